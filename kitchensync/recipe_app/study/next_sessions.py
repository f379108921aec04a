"""Sessions of the saved plan: a person's next sessions, and taking each session once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, func, select

from kitchensync.operations.errors import BadOperation, NotNow
from kitchensync.recipe_app.exchange.stated_facts import latest
from kitchensync.recipe_app.store import oplog, tables
from kitchensync.recipe_app.store.app_records import AppRecords
from kitchensync.recipe_app.study.plan_file import LATE, PlanEntry
from kitchensync.task_graphs.errors import NotFound

PLAN, TAKEN = "study_plan", "session"
SUBJECT = "plan"
MOST_SHOWN = 3


@dataclass(frozen=True, slots=True)
class NextSession:
    """A session of the plan; `session` is its id."""

    session: str
    entry: PlanEntry


def name_of(entry: PlanEntry) -> str:
    """Return the id of a session from its content, so that the same entry of a new plan is the same session."""
    names = entry.recipe, entry.strategy, entry.display, entry.person, entry.kitchen
    return hashlib.sha256("\n".join((*names, entry.start.isoformat())).encode()).hexdigest()[:24]


def kept_plan(records: AppRecords) -> tuple[int, dict[str, Any]]:
    """Return the number of the current plan, 0 before the first, and the plan."""
    op = tables.op
    query = select(op.c.n, op.c.body).where(op.c.kind == PLAN, oplog.IS_KEPT).order_by(op.c.n.desc()).limit(1)
    with records.database.reading() as connection:
        row = connection.execute(query).first()
    return (row.n, json.loads(row.body)) if row else (0, {"sessions": [], "goals": []})


def keep_plan(records: AppRecords, plan: Mapping[str, Any], *, seen: int | None, actor: str) -> int:
    """Save a plan as the current one; return its number of sessions.

    `seen` is the number of the plan that it was made from; None replaces any plan. Raises BadOperation, NotNow if
    somebody else saved a plan since.
    """
    try:
        entries = [PlanEntry.model_validate(session) for session in plan["sessions"]]
    except ValidationError as error:
        first = error.errors()[0]
        raise BadOperation(
            "no plan that `study plan` wrote: {where}: {why}",
            where=".".join(map(str, first["loc"])),
            why=first["msg"],
        ) from error
    body = {part: plan.get(part, []) for part in ("goals", "unmet", "notes")}
    body |= {
        "sessions": [session.model_dump(mode="json") for session in entries],
        "study": plan.get("study", ""),
    }
    op = tables.op
    with records.changing() as connection:
        last = connection.execute(select(func.max(op.c.n)).where(op.c.kind == PLAN, oplog.IS_KEPT)).scalar()
        if seen is not None and seen != (last or 0):
            raise NotNow(
                "somebody else changed the plan since this page was loaded; yours was not kept, and stands here: "
                "open the page again beside it and bring both together"
            )
        records.note_within(connection, PLAN, SUBJECT, body, actor=actor)
    return len(entries)


def sessions_of(records: AppRecords) -> list[NextSession]:
    """Return all sessions of the plan, in order of time."""
    kept = kept_plan(records)[1]
    entries = [PlanEntry.model_validate(session) for session in kept["sessions"]]
    return [NextSession(name_of(entry), entry) for entry in sorted(entries, key=lambda entry: entry.start)]


def taken(records: AppRecords) -> dict[str, str]:
    """Return session -> recording of the sessions that were begun and not given back."""
    return {
        session: recording
        for session, body in latest(records, TAKEN).items()
        if (recording := body["recording"])
    }


def give_back(records: AppRecords, recording: str, *, actor: str) -> None:
    """Offer the session of an aborted recording again."""
    for session, holder in taken(records).items():
        if holder == recording:
            records.note(TAKEN, session, {"recording": ""}, actor=actor)


def next_of(records: AppRecords, pseudonym: str, now: datetime) -> list[NextSession]:
    """Return the next sessions of a person that are not begun, the nearest first."""
    begun = taken(records)
    coming = [planned for planned in sessions_of(records) if planned.entry.start > now - LATE]
    mine = [planned for planned in coming if planned.entry.person == pseudonym]
    return [planned for planned in mine if planned.session not in begun][:MOST_SHOWN]


def session_named(records: AppRecords, session: str, pseudonym: str) -> PlanEntry:
    """Return a person's session of the plan by its id. Raises NotFound."""
    for planned in sessions_of(records):
        if planned.session == session and planned.entry.person == pseudonym:
            return planned.entry
    raise NotFound("this session is not in the plan any more; look at the recipes again")


def take(connection: Connection, records: AppRecords, session: str, recording: str, *, actor: str) -> None:
    """Take a session for a recording in the transaction that begins it. Raises NotNow if another recording has it.

    Repeating the request for the same recording changes nothing.
    """
    op = tables.op
    query = select(op.c.body).where(op.c.kind == TAKEN, op.c.subject == session).order_by(op.c.n.desc())
    if (row := connection.execute(query.limit(1)).first()) and (holder := json.loads(row.body)["recording"]):
        if holder == recording:
            return
        raise NotNow("this session was begun on another tablet; look at the recipes again")
    records.note_within(connection, TAKEN, session, {"recording": recording}, actor=actor)

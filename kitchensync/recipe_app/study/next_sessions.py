"""Sessions of a study's plan in the app: whose is next, and each is taken once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, func, select

from kitchensync.operations.errors import BadOperation, NotNow
from kitchensync.recipe_app.exchange.stated_facts import latest
from kitchensync.recipe_app.store import oplog, tables
from kitchensync.recipe_app.store.app_records import AppRecords
from kitchensync.recipe_app.study.plan_file import PlanEntry
from kitchensync.task_graphs.errors import NotFound

PLAN, TAKEN = "study_plan", "session"
SUBJECT = "plan"
MOST_SHOWN = 3
LATE = timedelta(hours=12)
"""So long after its time a session is still offered; a plan made anew has it at another time."""


@dataclass(frozen=True, slots=True)
class NextSession:
    """A session of the plan that nobody has begun; `session` names it."""

    session: str
    entry: PlanEntry


def name_of(entry: PlanEntry) -> str:
    """Name a session by what it is: the same entry of a plan that was made anew is the same session."""
    said = (entry.recipe, entry.strategy, entry.display, entry.person, entry.kitchen, entry.start.isoformat())
    return hashlib.sha256("\n".join(said).encode()).hexdigest()[:24]


def kept_plan(records: AppRecords) -> tuple[int, dict[str, Any]]:
    """Return the number of the plan that holds, 0 before the first, and the plan."""
    op = tables.op
    asked = select(op.c.n, op.c.body).where(op.c.kind == PLAN, oplog.IS_KEPT).order_by(op.c.n.desc()).limit(1)
    with records.database.reading() as connection:
        row = connection.execute(asked).first()
    return (row.n, json.loads(row.body)) if row else (0, {"sessions": [], "goals": []})


def keep_plan(records: AppRecords, plan: Mapping[str, Any], *, seen: int | None, actor: str) -> int:
    """Keep a plan, in the place of the one before; return its number of sessions.

    `seen` is the number of the plan that it was made from; None replaces whatever is there. Raises BadOperation,
    NotNow where somebody else kept one since.
    """
    try:
        entries = [PlanEntry.model_validate(one) for one in plan["sessions"]]
    except ValidationError as error:
        first = error.errors()[0]
        raise BadOperation(
            "no plan that `study plan` wrote: {where}: {why}",
            where=".".join(map(str, first["loc"])),
            why=first["msg"],
        ) from error
    body = {part: plan.get(part, []) for part in ("goals", "unmet", "notes")}
    body |= {"sessions": [one.model_dump(mode="json") for one in entries], "study": plan.get("study", "")}
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
    entries = sorted((PlanEntry.model_validate(one) for one in kept["sessions"]), key=lambda one: one.start)
    return [NextSession(name_of(entry), entry) for entry in entries]


def taken(records: AppRecords) -> dict[str, str]:
    """Return session -> the recording that took it; not of those that were given back."""
    return {session: one for session, body in latest(records, TAKEN).items() if (one := body["recording"])}


def give_back(records: AppRecords, recording: str, *, actor: str) -> None:
    """Let the session of a recording that was aborted be begun again: it is offered as before."""
    for session, one in taken(records).items():
        if one == recording:
            records.note(TAKEN, session, {"recording": ""}, actor=actor)


def next_of(records: AppRecords, pseudonym: str, now: datetime) -> list[NextSession]:
    """Return the next sessions of a person that nobody began, the nearest first."""
    gone = taken(records)
    mine = (one for one in sessions_of(records) if one.entry.person == pseudonym and one.session not in gone)
    return [one for one in mine if one.entry.start > now - LATE][:MOST_SHOWN]


def session_named(records: AppRecords, session: str, pseudonym: str) -> PlanEntry:
    """Find a session of the plan and somebody's own. Raises NotFound."""
    for one in sessions_of(records):
        if one.session == session and one.entry.person == pseudonym:
            return one.entry
    raise NotFound("this session is not in the plan any more; look at the recipes again")


def take(connection: Connection, records: AppRecords, session: str, recording: str, *, actor: str) -> None:
    """Take a session for a recording, within the transaction that begins it. Raises NotNow where another has it.

    The same request sent twice at once takes it once.
    """
    op = tables.op
    asked = select(op.c.body).where(op.c.kind == TAKEN, op.c.subject == session).order_by(op.c.n.desc())
    if (row := connection.execute(asked.limit(1)).first()) and (holder := json.loads(row.body)["recording"]):
        if holder == recording:
            return
        raise NotNow("this session was begun on another tablet; look at the recipes again")
    records.note_within(connection, TAKEN, session, {"recording": recording}, actor=actor)

"""Sessions of a study's plan in the app: whose is next, and each is taken once."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, func, select

from recipe_app.errors import BadOperation, NotFound, NotNow
from recipe_app.exchange.stated_facts import latest
from recipe_app.store import tables
from recipe_app.store.app_records import AppRecords
from recipe_app.study.plan_file import PlanEntry, PlanGoal

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


def keep_plan(records: AppRecords, sessions: list[Any], goals: list[Any], *, actor: str) -> int:
    """Keep a plan, in the place of the one before; return its number of sessions. Raises BadOperation."""
    try:
        entries = [PlanEntry.model_validate(one) for one in sessions]
        wanted = [PlanGoal.model_validate(one) for one in goals]
    except ValidationError as error:
        first = error.errors()[0]
        raise BadOperation(
            "no plan that `study plan` wrote: {where}: {why}",
            where=".".join(map(str, first["loc"])),
            why=first["msg"],
        ) from error
    body = {
        "sessions": [entry.model_dump(mode="json") for entry in entries],
        "goals": [goal.model_dump() for goal in wanted],
    }
    records.note(PLAN, SUBJECT, body, actor=actor)
    return len(entries)


def sessions_of(records: AppRecords) -> list[NextSession]:
    """Return all sessions of the plan, in order of time."""
    kept = latest(records, PLAN).get(SUBJECT, {"sessions": []})
    entries = sorted((PlanEntry.model_validate(one) for one in kept["sessions"]), key=lambda one: one.start)
    return [NextSession(name_of(entry), entry) for entry in entries]


@dataclass(slots=True)
class PlanCell:
    """Of one recipe and strategy: how many are wanted, planned and still to come, cooked to the end, withdrawn."""

    wanted: int = 0
    planned: int = 0
    cooked: int = 0
    withdrawn: int = 0


def cells_of(records: AppRecords) -> dict[tuple[str, str], PlanCell]:
    """Count what the plan is for against the app's recordings, recipe and strategy by recipe and strategy."""
    cells: dict[tuple[str, str], PlanCell] = {}
    for goal in latest(records, PLAN).get(SUBJECT, {}).get("goals", []):
        cells.setdefault((goal["recipe"], goal["strategy"]), PlanCell()).wanted += goal["count"]
    gone = taken(records)
    for one in sessions_of(records):
        cell = cells.setdefault((one.entry.recipe, one.entry.strategy), PlanCell())
        cell.planned += one.session not in gone
    row = tables.recording.c
    asked = select(row.recipe, row.strategy, row.phase, func.count()).group_by(
        row.recipe, row.strategy, row.phase
    )
    with records.database.reading() as connection:
        for recipe, strategy, phase, count in connection.execute(asked):
            if (found := cells.get((recipe, strategy))) is not None:
                found.cooked += count * (phase == "done")
                found.withdrawn += count * (phase == "withdrawn")
    return cells


def taken(records: AppRecords) -> dict[str, str]:
    """Return session -> the recording that took it."""
    return {session: body["recording"] for session, body in latest(records, TAKEN).items()}


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
    """Take a session for a recording, within the transaction that begins it. Raises NotNow where somebody did."""
    op = tables.op
    if connection.execute(select(op.c.n).where(op.c.kind == TAKEN, op.c.subject == session)).first():
        raise NotNow("this session was begun on another tablet; look at the recipes again")
    records.note_within(connection, TAKEN, session, {"recording": recording}, actor=actor)

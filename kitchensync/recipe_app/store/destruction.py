"""Destroy the data of recordings and people: rows of the log keep their hashes, so its chain stays intact."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, delete, select, text, update
from sqlalchemy.exc import SQLAlchemyError

from kitchensync.recipe_app.store import oplog, tables
from kitchensync.recipe_app.store.app_records import AppRecords
from kitchensync.recipe_app.store.database import Database

PLAN = "study_plan"
PARTICIPANT = ["participant"]
_OF_RECORDING = ((tables.voice, "recording"), (tables.error, "recording"), (tables.recording, "id"))
_OF_PERSON = ((tables.credential, "person"), (tables.login, "person"), (tables.person, "id"))


@dataclass(frozen=True)
class ToDestroy:
    """Ids of recordings and people."""

    recordings: tuple[str, ...] = ()
    people: tuple[str, ...] = ()


def to_destroy(records: AppRecords, folders: Sequence[str], pseudonym: str = "") -> ToDestroy:
    """Return the ids of the recordings in these folders, and of the person with this pseudonym."""
    rows = records.rows(tables.recording, tables.recording.c.folder.in_(folders), limit=1 << 20)
    people = records.rows(tables.person, tables.person.c.pseudonym == pseudonym) if pseudonym else []
    ids = tuple(row["id"] for row in people)
    rows += records.rows(tables.recording, tables.recording.c.person.in_(ids), limit=1 << 20)
    return ToDestroy(tuple(dict.fromkeys(row["id"] for row in rows)), ids)


def destroy(records: AppRecords, what: ToDestroy) -> int:
    """Destroy bodies, salts and sounds; return the number of emptied rows of the log. Idempotent.

    A person with more roles than participant keeps the account; only the recordings are destroyed.
    """
    with records.changing() as connection:
        query = select(tables.person.c.id, tables.person.c.roles).where(tables.person.c.id.in_(what.people))
        with_more_roles = {
            row.id for row in connection.execute(query) if json.loads(row.roles) not in (PARTICIPANT, [])
        }
        people = [person for person in what.people if person not in with_more_roles]
        planned = _without(connection, people)
        _drop(connection, _OF_RECORDING, what.recordings)
        emptied = 0
        for subject in (*what.recordings, *people):
            emptied += _empty(connection, records, subject, tables.op.c.subject == subject)
        if planned is not None:
            emptied += _empty(connection, records, PLAN, tables.op.c.kind == PLAN)
            records.note_within(connection, PLAN, "plan", planned, actor="")
        _drop(connection, _OF_PERSON, people)
    for subject in what.recordings:
        records.forget(subject)
    return emptied


def _drop(connection: Connection, of: Iterable[tuple[Table, str]], keys: Sequence[str]) -> None:
    for table, column in of:
        connection.execute(delete(table).where(table.c[column].in_(keys)))


def _empty(connection: Connection, records: AppRecords, subject: str, where: ColumnElement[bool]) -> int:
    """Empty body, clock and salt of rows, and log which rows."""
    op = tables.op
    query = select(op.c.n).where(where, op.c.kind != oplog.DESTROYED, oplog.IS_KEPT).order_by(op.c.n)
    numbers = list(connection.execute(query).scalars())
    if not numbers:
        return 0
    for first, last in ranges(numbers):
        among = op.c.n.between(first, last)
        connection.execute(delete(tables.unfiled).where(tables.unfiled.c.n.between(first, last)))
        connection.execute(update(op).where(among).values(body="", clock="", salt=""))
    body = {"numbers": ranges(numbers)}
    records.note_within(connection, oplog.DESTROYED, subject, body, actor="")
    return len(numbers)


def ranges(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Return ascending numbers as ranges (first, last)."""
    ends = [n for n, after in pairwise(numbers) if after != n + 1]
    starts = [after for n, after in pairwise(numbers) if after != n + 1]
    return list(zip([numbers[0], *starts], [*ends, numbers[-1]], strict=True))


def _without(connection: Connection, people: Sequence[str]) -> dict[str, Any] | None:
    """Return the current plan without these people; None if no saved plan names one."""
    query = select(tables.person.c.pseudonym).where(tables.person.c.id.in_(people))
    names = set(connection.execute(query).scalars())
    plan_bodies = (
        select(tables.op.c.body).where(tables.op.c.kind == PLAN, oplog.IS_KEPT).order_by(tables.op.c.n)
    )
    plans = [json.loads(body) for body in connection.execute(plan_bodies).scalars()]
    if not names or not any(_names_any(json.dumps(plan, ensure_ascii=False), names) for plan in plans):
        return None
    last = plans[-1]
    kept = {
        part: [entry for entry in last[part] if entry["person"] not in names]
        for part in ("sessions", "goals")
    }
    others = {part: value for part, value in last.items() if part not in (*kept, "study")}
    shortened = {
        part: [entry for entry in value if not _names_any(json.dumps(entry), names)]
        for part, value in others.items()
    }
    # In the study file, remove the tables of these people and the lines that name them.
    lines, is_theirs = [], False
    for line in last.get("study", "").splitlines(keepends=True):
        if line.lstrip().startswith("["):
            is_theirs = _names_any(line, names)
        if not is_theirs and not _names_any(line, names):
            lines.append(line)
    return kept | shortened | {"study": "".join(lines)}


def _names_any(text: str, names: set[str]) -> bool:
    return any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) for name in names)


def naming(records: AppRecords, pseudonym: str) -> int:
    """Return the number of rows of the log that still contain this pseudonym as a JSON string."""
    pattern = f"%{json.dumps(pseudonym, ensure_ascii=False)}%".replace("_", r"\_")
    query = select(tables.op.c.n).where(tables.op.c.body.like(pattern, escape="\\"))
    with records.database.reading() as connection:
        return len(connection.execute(query).all())


def scrub(database: Database, place: Path | str) -> str:
    """Remove destroyed data from the database's files; return why some may remain, or an empty text."""
    try:
        if isinstance(place, Path):
            with closing(sqlite3.connect(place, timeout=30, isolation_level=None)) as file:
                file.execute("VACUUM")
                busy, *_ = file.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            return "somebody reads the database, its write-ahead log still holds them" if busy else ""
        with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            for table in (tables.op, tables.voice, tables.person):
                connection.execute(text(f"VACUUM FULL {table.name}"))
    except (sqlite3.Error, SQLAlchemyError) as error:
        return f"the database could not be cleaned ({str(error).splitlines()[0]})"
    return ""

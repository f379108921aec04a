"""Destroy what the app remembers of recordings and people: rows keep their hashes, and the log's chain holds."""

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
    """Recordings and people, by the names that the app gives them."""

    recordings: tuple[str, ...] = ()
    people: tuple[str, ...] = ()


def found_of(records: AppRecords, folders: Sequence[str], pseudonym: str = "") -> ToDestroy:
    """Find what the app has of recordings in these folders, and of a person with this pseudonym."""
    rows = records.rows(tables.recording, tables.recording.c.folder.in_(folders), limit=1 << 20)
    people = records.rows(tables.person, tables.person.c.pseudonym == pseudonym) if pseudonym else []
    ids = tuple(row["id"] for row in people)
    rows += records.rows(tables.recording, tables.recording.c.person.in_(ids), limit=1 << 20)
    return ToDestroy(tuple(dict.fromkeys(row["id"] for row in rows)), ids)


def destroy(records: AppRecords, what: ToDestroy) -> int:
    """Destroy words, salts and sounds; return how many rows of the log lost theirs. Again, nothing is left to do.

    A person who is more than a participant keeps the account: the recordings go, the name stays.
    """
    with records.changing() as connection:
        asked = select(tables.person.c.id, tables.person.c.roles).where(tables.person.c.id.in_(what.people))
        more = {row.id for row in connection.execute(asked) if json.loads(row.roles) not in (PARTICIPANT, [])}
        people = [one for one in what.people if one not in more]
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
    """Take body, clock and salt out of rows, and note which."""
    op = tables.op
    asked = select(op.c.n).where(where, op.c.kind != oplog.DESTROYED, oplog.IS_KEPT).order_by(op.c.n)
    numbers = list(connection.execute(asked).scalars())
    if not numbers:
        return 0
    for first, last in ranges(numbers):
        among = op.c.n.between(first, last)
        connection.execute(delete(tables.unfiled).where(tables.unfiled.c.n.between(first, last)))
        connection.execute(update(op).where(among).values(body="", clock="", salt=""))
    said = {"numbers": ranges(numbers)}
    records.note_within(connection, oplog.DESTROYED, subject, said, actor="")
    return len(numbers)


def ranges(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Return rising numbers as pairs of first and last."""
    ends = [n for n, after in pairwise(numbers) if after != n + 1]
    starts = [after for n, after in pairwise(numbers) if after != n + 1]
    return list(zip([numbers[0], *starts], [*ends, numbers[-1]], strict=True))


def _without(connection: Connection, people: Sequence[str]) -> dict[str, Any] | None:
    """Return the plan that holds without these people; None where no kept plan ever named one."""
    asked = select(tables.person.c.pseudonym).where(tables.person.c.id.in_(people))
    names = set(connection.execute(asked).scalars())
    kept = select(tables.op.c.body).where(tables.op.c.kind == PLAN, oplog.IS_KEPT).order_by(tables.op.c.n)
    plans = [json.loads(body) for body in connection.execute(kept).scalars()]
    if not names or not any(_says(json.dumps(plan, ensure_ascii=False), names) for plan in plans):
        return None
    last = plans[-1]
    left = {part: [one for one in last[part] if one["person"] not in names] for part in ("sessions", "goals")}
    rest = {part: value for part, value in last.items() if part not in (*left, "study")}
    said = {part: [one for one in value if not _says(json.dumps(one), names)] for part, value in rest.items()}
    # The study file loses the tables of these people and the lines that name them.
    lines, is_theirs = [], False
    for line in last.get("study", "").splitlines(keepends=True):
        if line.lstrip().startswith("["):
            is_theirs = _says(line, names)
        if not is_theirs and not _says(line, names):
            lines.append(line)
    return left | said | {"study": "".join(lines)}


def _says(words: str, names: set[str]) -> bool:
    return any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", words) for name in names)


def naming(records: AppRecords, pseudonym: str) -> int:
    """Return how many rows of the log still say this pseudonym, as a whole word of JSON."""
    said = f"%{json.dumps(pseudonym, ensure_ascii=False)}%".replace("_", r"\_")
    asked = select(tables.op.c.n).where(tables.op.c.body.like(said, escape="\\"))
    with records.database.reading() as connection:
        return len(connection.execute(asked).all())


def scrub(database: Database, place: Path | str) -> str:
    """Give back the pages that destroyed words lay on; return why they may still lie there, or nothing."""
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

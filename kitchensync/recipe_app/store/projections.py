"""Tables that say what the log adds up to, kept up to date with each operation and rebuilt from nothing on demand."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

from sqlalchemy import Connection, Table, delete, insert
from sqlalchemy.dialects import postgresql, sqlite

from kitchensync.operations.event_lines import folder_of
from kitchensync.operations.reduce import reduce_log, removed_sounds
from kitchensync.operations.session_state import ErrorState, Op, State
from kitchensync.recipe_app.store import oplog, tables

OpsOf = Callable[[Connection, str], list[Op]]


def apply(connection: Connection, op: Op, ops_of: OpsOf = oplog.ops_of) -> None:
    """Take one operation of the log into the tables; `ops_of` gives the operations of its subject so far."""
    if not apply_desk(connection, op):
        subjects = {op["subject"]: ops_of(connection, op["subject"])}
        apply_recordings(connection, subjects, errors={op["subject"]} if op["kind"] in OF_ERRORS else set())


def apply_desk(connection: Connection, op: Op) -> bool:
    """Take an operation into the tables that is of no recording; return whether it is one."""
    if (table := _TABLES.get(op["kind"])) is None:
        return op["kind"] in _HISTORY
    given = op["body"] | {"id": op["subject"]}
    row = {column.name: given[column.name] for column in table.columns}
    if table is tables.person:
        row["roles"] = json.dumps(row["roles"])
    _upsert(connection, table, [row])
    return True


_TABLES = {
    "person": tables.person,
    "kitchen": tables.kitchen,
    "device": tables.device,
    "recipe": tables.recipe,
}
"""Tables whose rows are what operations of a kind say, the last one of a subject."""
_HISTORY = frozenset(
    (
        *("secret", "code", "shelved", "study_plan", "session", "training", "dump", "collection"),
        *("destroyed", "dumped", "forgotten", "downloaded"),
    )
)
"""Kinds without a table: secrets that changed, codes that were made; the secrets themselves are elsewhere."""


def rebuild(connection: Connection) -> None:
    """Empty the derived tables and make them again from the log."""
    for table in tables.DERIVED:
        connection.execute(delete(table))
    ops = oplog.everything(connection)
    for subject in dict.fromkeys(op["subject"] for op in ops if not apply_desk(connection, op)):
        apply_recordings(connection, {subject: oplog.ops_of(connection, subject)}, errors={subject})


def _upsert(connection: Connection, table: Table, rows: list[dict[str, Any]]) -> None:
    """Put rows in the place of those with the same key, in one statement."""
    connection.execute(_put(connection.dialect.name, table), rows)


@cache
def _put(dialect: str, table: Table) -> Any:
    made = (postgresql if dialect == "postgresql" else sqlite).insert(table)
    keys = [column.name for column in table.primary_key]
    kept = {column.name: made.excluded[column.name] for column in table.columns if column.name not in keys}
    return made.on_conflict_do_update(index_elements=keys, set_=kept)


def apply_recordings(connection: Connection, subjects: dict[str, list[Op]], *, errors: set[str]) -> None:
    """Take recordings into the tables, each with all its operations; the error rows of those in `errors` anew.

    The sound of a voice note that was removed is deleted.
    """
    rows, failures = [], []
    for subject, ops in subjects.items():
        first = next((op for op in ops if op["kind"] == "recording"), None)
        if first is None:
            continue
        state = reduce_log(ops)
        rows.append({"id": subject, **_row(state, first, ops)})
        if removed := removed_sounds(ops, state):
            mine = (tables.voice.c.recording == subject, tables.voice.c.sha256.in_(removed))
            connection.execute(delete(tables.voice).where(*mine))
        if subject in errors:
            for found in state["errors"].values():
                if not found["removed"]:
                    row = {column.name: found.get(column.name) for column in tables.error.columns}
                    own = {"recording": subject, "host_ns": found["at"]}
                    failures.append(row | own | {"categories": json.dumps(found["categories"])})
    if rows:
        _upsert(connection, tables.recording, rows)
    if errors:
        connection.execute(delete(tables.error).where(tables.error.c.recording.in_(errors)))
    if failures:
        connection.execute(insert(tables.error), failures)


OF_ERRORS = frozenset(("recording", "plan_error", "error", "recovered", "edit_error", "add_error", "undo"))
"""Kinds of operations that can change what is said of a recording's errors."""


def _row(state: State, first: Op, ops: list[Op]) -> dict[str, Any]:
    body = state["recording"]
    errors = [found for found in state["errors"].values() if not found["removed"]]
    return {
        "folder": folder_of(ops),
        "person": first["actor"],
        "kitchen": body["kitchen"],
        "recipe": body["name"],
        "graph_hash": body["graph_hash"],
        "strategy": body["strategy"],
        "display": body["display"],
        "phase": state["phase"],
        "steps": len(body["order"]),
        "steps_done": sum(step["state"] == "done" for step in state["steps"].values()),
        "errors": sum(happened(found) for found in errors),
        "planned": sum(found["planned"] for found in errors),
        "conflicts": sum(len(found["conflicts"]) for found in errors),
        "created_utc_ns": body.get("began_utc_ns") or first["received_utc_ns"],
        "last_n": ops[-1]["n"],
    }


def happened(error: ErrorState) -> bool:
    """Return whether an error was made: logged or added by hand, or planned and reviewed as done."""
    return not error["planned"] or error["outcome"] in ("as_planned", "differently")

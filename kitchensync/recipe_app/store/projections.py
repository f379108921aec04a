"""Tables derived from the log, updated with each operation and rebuilt on demand."""

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
    """Update the tables for one operation of the log; `ops_of` returns the operations of its subject so far."""
    if not apply_desk(connection, op):
        subjects = {op["subject"]: ops_of(connection, op["subject"])}
        apply_recordings(connection, subjects, errors={op["subject"]} if op["kind"] in OF_ERRORS else set())


def apply_desk(connection: Connection, op: Op) -> bool:
    """Update the tables for an operation that is not of a recording; return whether it is one."""
    if (table := _TABLES.get(op["kind"])) is None:
        return op["kind"] in _HISTORY
    values = op["body"] | {"id": op["subject"]}
    row = {column.name: values[column.name] for column in table.columns}
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
"""Kinds whose last operation of a subject is a row of a table."""
_HISTORY = frozenset(
    (
        *("secret", "code", "shelved", "study_plan", "session", "training", "dump", "collection"),
        *("destroyed", "dumped", "forgotten", "downloaded"),
    )
)
"""Kinds without a table, such as changed secrets and new codes; the secrets themselves are not in the log."""


def rebuild(connection: Connection) -> None:
    """Rebuild the derived tables from the log."""
    for table in tables.DERIVED:
        connection.execute(delete(table))
    ops = oplog.everything(connection)
    for subject in dict.fromkeys(op["subject"] for op in ops if not apply_desk(connection, op)):
        apply_recordings(connection, {subject: oplog.ops_of(connection, subject)}, errors={subject})


def _upsert(connection: Connection, table: Table, rows: list[dict[str, Any]]) -> None:
    """Insert rows, replacing those with the same key, with one statement."""
    connection.execute(_put(connection.dialect.name, table), rows)


@cache
def _put(dialect: str, table: Table) -> Any:
    statement = (postgresql if dialect == "postgresql" else sqlite).insert(table)
    keys = [column.name for column in table.primary_key]
    new_values = {
        column.name: statement.excluded[column.name] for column in table.columns if column.name not in keys
    }
    return statement.on_conflict_do_update(index_elements=keys, set_=new_values)


def apply_recordings(connection: Connection, subjects: dict[str, list[Op]], *, errors: set[str]) -> None:
    """Update the tables for recordings with all their operations, and the error rows of those in `errors`.

    The sounds of removed voice notes are deleted.
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
            for error in state["errors"].values():
                if not error["removed"]:
                    row = {column.name: error.get(column.name) for column in tables.error.columns}
                    own = {"recording": subject, "host_ns": error["at"]}
                    failures.append(row | own | {"categories": json.dumps(error["categories"])})
    if rows:
        _upsert(connection, tables.recording, rows)
    if errors:
        connection.execute(delete(tables.error).where(tables.error.c.recording.in_(errors)))
    if failures:
        connection.execute(insert(tables.error), failures)


OF_ERRORS = frozenset(("recording", "plan_error", "error", "recovered", "edit_error", "add_error", "undo"))
"""Kinds of operations that can change a recording's errors."""


def _row(state: State, first: Op, ops: list[Op]) -> dict[str, Any]:
    body = state["recording"]
    errors = [error for error in state["errors"].values() if not error["removed"]]
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
        "errors": sum(happened(error) for error in errors),
        "planned": sum(error["planned"] for error in errors),
        "conflicts": sum(len(error["conflicts"]) for error in errors),
        "created_utc_ns": body.get("began_utc_ns") or first["received_utc_ns"],
        "last_n": ops[-1]["n"],
    }


def happened(error: ErrorState) -> bool:
    """Return whether an error happened: logged or added by hand, or planned and reviewed as done."""
    return not error["planned"] or error["outcome"] in ("as_planned", "differently")

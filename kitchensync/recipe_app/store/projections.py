"""Tables that say what the log adds up to, kept up to date with each operation and rebuilt from nothing on demand."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

from sqlalchemy import Connection, Table, delete, insert, select
from sqlalchemy.dialects import postgresql, sqlite

from kitchensync.operations.event_lines import folder_of
from kitchensync.operations.reduce import reduce_log, removed_sounds
from kitchensync.operations.session_state import ErrorState, Op, State
from kitchensync.recipe_app.store import oplog, tables

OpsOf = Callable[[Connection, str], list[Op]]


def apply(connection: Connection, op: Op, ops_of: OpsOf = oplog.ops_of) -> None:
    """Take one operation of the log into the tables; `ops_of` gives the operations of its subject so far."""
    if op["kind"] in _DESK:
        _DESK[op["kind"]](connection, op)
    else:
        subjects = {op["subject"]: ops_of(connection, op["subject"])}
        apply_recordings(connection, subjects, errors={op["subject"]} if touches_errors(op) else set())


def apply_desk(connection: Connection, op: Op) -> None:
    """Take an operation into the tables that is of no recording; leave the others out."""
    if op["kind"] in _DESK:
        _DESK[op["kind"]](connection, op)


def rebuild(connection: Connection) -> int:
    """Empty the derived tables and make them again from the log; return the number of operations."""
    for table in tables.DERIVED:
        connection.execute(delete(table))
    subjects: dict[str, None] = {}
    count = 0
    for op in oplog.everything(connection):
        count += 1
        if op["kind"] in _DESK:
            _DESK[op["kind"]](connection, op)
        else:
            subjects[op["subject"]] = None
    for subject in subjects:
        apply_recordings(connection, {subject: oplog.ops_of(connection, subject)}, errors={subject})
    return count


def _upsert(connection: Connection, table: Table, rows: list[dict[str, Any]]) -> None:
    """Put rows in the place of those with the same key, in one statement."""
    connection.execute(_put(connection.dialect.name, table), rows)


@cache
def _put(dialect: str, table: Table) -> Any:
    made = (postgresql if dialect == "postgresql" else sqlite).insert(table)
    keys = [column.name for column in table.primary_key]
    kept = {column.name: made.excluded[column.name] for column in table.columns if column.name not in keys}
    return made.on_conflict_do_update(index_elements=keys, set_=kept)


def _person(connection: Connection, op: Op) -> None:
    body = op["body"]
    values = {"pseudonym": body["pseudonym"], "roles": json.dumps(body["roles"]), "active": body["active"]}
    _upsert(connection, tables.person, [{"id": op["subject"], **values}])


def _kitchen(connection: Connection, op: Op) -> None:
    _upsert(connection, tables.kitchen, [{"id": op["subject"], "name": op["body"]["name"]}])


def _device(connection: Connection, op: Op) -> None:
    body = op["body"]
    values = {name: body[name] for name in ("name", "kitchen", "active", "secure")}
    _upsert(connection, tables.device, [{"id": op["subject"], **values}])


def _recipe(connection: Connection, op: Op) -> None:
    body = op["body"]
    values = {
        "name": body["name"],
        "title": body["title"],
        "version": body["version"],
        "graph": body["graph"],
    }
    _upsert(connection, tables.recipe, [{"graph_hash": body["graph_hash"], **values}])


def _nothing(_: Connection, __: Op) -> None:
    """Secrets that changed, codes that were made: history only; the secrets themselves are elsewhere."""


_DESK: dict[str, Callable[[Connection, Op], None]] = {
    "person": _person,
    "kitchen": _kitchen,
    "device": _device,
    "recipe": _recipe,
    "secret": _nothing,
    "code": _nothing,
    "shelved": _nothing,
    "study_plan": _nothing,
    "session": _nothing,
    "training": _nothing,
    "dump": _nothing,
    "collection": _nothing,
    "destroyed": _nothing,
    "dumped": _nothing,
    "forgotten": _nothing,
    "downloaded": _nothing,
}


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
            failures += [_error(subject, found) for found in state["errors"].values() if not found["removed"]]
    if rows:
        _upsert(connection, tables.recording, rows)
    if errors:
        connection.execute(delete(tables.error).where(tables.error.c.recording.in_(errors)))
    if failures:
        connection.execute(insert(tables.error), failures)


def touches_errors(op: Op) -> bool:
    """Return whether an operation can change what is said of a recording's errors."""
    return op["kind"] in _OF_ERRORS


_OF_ERRORS = frozenset(("recording", "plan_error", "error", "recovered", "edit_error", "add_error", "undo"))


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


def _error(subject: str, found: ErrorState) -> dict[str, Any]:
    same = ("error_id", "node", "origin", "planned", "outcome", "description", "text")
    return {
        "recording": subject,
        "categories": json.dumps(found["categories"]),
        "host_ns": found["at"],
        **{name: found.get(name) for name in same},
    }


def dump(connection: Connection) -> dict[str, list[dict[str, Any]]]:
    """Return the content of every derived table, in an order that does not depend on how it came about."""
    return {
        table.name: sorted(
            (row._asdict() for row in connection.execute(select(table))),
            key=lambda row: json.dumps(row, sort_keys=True),
        )
        for table in tables.DERIVED
    }

"""Tables that say what the log adds up to, kept up to date with each operation and rebuilt from nothing on demand."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, Table, delete, insert, select, update

from recipe_app.operations.events import folder_of
from recipe_app.operations.fold import State, fold
from recipe_app.store import oplog, tables

Op = dict[str, Any]
OpsOf = Callable[[Connection, str], list[Op]]


def apply(connection: Connection, op: Op, ops_of: OpsOf = oplog.ops_of) -> None:
    """Take one operation of the log into the tables; `ops_of` gives the operations of its subject so far."""
    if op["kind"] in _DESK:
        _DESK[op["kind"]](connection, op)
    else:
        _recording(connection, op["subject"], ops_of(connection, op["subject"]))


def rebuild(connection: Connection) -> int:
    """Empty the derived tables and make them again from the log; return the number of operations."""
    for table in tables.DERIVED:
        connection.execute(delete(table))
    subjects: dict[str, None] = {}
    count = 0
    for op in list(oplog.everything(connection)):
        count += 1
        if op["kind"] in _DESK:
            _DESK[op["kind"]](connection, op)
        else:
            subjects[op["subject"]] = None
    for subject in subjects:
        _recording(connection, subject, oplog.ops_of(connection, subject))
    return count


def _upsert(connection: Connection, table: Table, key: dict[str, Any], values: dict[str, Any]) -> None:
    """Both databases, one writer at a time: update, and insert what was not there."""
    same = [table.c[name] == value for name, value in key.items()]
    if connection.execute(update(table).where(*same).values(values)).rowcount == 0:
        connection.execute(insert(table).values({**key, **values}))


def _person(connection: Connection, op: Op) -> None:
    body = op["body"]
    values = {"pseudonym": body["pseudonym"], "roles": json.dumps(body["roles"]), "active": body["active"]}
    _upsert(connection, tables.person, {"id": op["subject"]}, values)


def _kitchen(connection: Connection, op: Op) -> None:
    _upsert(connection, tables.kitchen, {"id": op["subject"]}, {"name": op["body"]["name"]})


def _device(connection: Connection, op: Op) -> None:
    body = op["body"]
    values = {name: body[name] for name in ("name", "kitchen", "active", "secure")}
    _upsert(connection, tables.device, {"id": op["subject"]}, values)


def _recipe(connection: Connection, op: Op) -> None:
    body = op["body"]
    values = {
        "name": body["name"],
        "title": body["title"],
        "version": body["version"],
        "graph": body["graph"],
    }
    _upsert(connection, tables.recipe, {"graph_hash": body["graph_hash"]}, values)


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
}


def _recording(connection: Connection, subject: str, ops: list[Op]) -> None:
    first = next((op for op in ops if op["kind"] == "recording"), None)
    if first is None:
        return
    state = fold(ops)
    _upsert(connection, tables.recording, {"id": subject}, _row(state, first, ops))
    connection.execute(delete(tables.error).where(tables.error.c.recording == subject))
    rows = [_error(subject, found) for found in state["errors"].values() if not found["removed"]]
    if rows:
        connection.execute(insert(tables.error).values(rows))


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
        "created_utc_ns": first["received_utc_ns"],
        "last_n": ops[-1]["n"],
    }


def happened(error: State) -> bool:
    """Tell whether an error was made: logged or added by hand, or planned and reviewed as done."""
    return not error["planned"] or error["outcome"] in ("as_planned", "differently")


def _error(subject: str, found: State) -> dict[str, Any]:
    same = ("error_id", "node", "origin", "planned", "outcome", "description", "text")
    return {
        "recording": subject,
        "categories": json.dumps(found["categories"]),
        "host_ns": found["at"],
        **{name: found[name] for name in same},
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

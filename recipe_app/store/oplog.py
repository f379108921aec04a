"""The log: operations are appended once, numbered without a gap, each row carrying the hash of the row before it.

It is the audit log too: who did what on which device, when, and nothing can be changed or taken out unnoticed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Row, func, insert, select

from recipe_app.errors import BadOperation
from recipe_app.store.tables import op as table

FIRST = "0" * 64
SERVER = "server"
"""The device name of operations that the server makes itself."""

_HASHED = (
    "n",
    "op_id",
    "device",
    "seq",
    "actor",
    "subject",
    "kind",
    "body",
    "clock",
    "seen",
    "host_ns",
    "uncertainty_ns",
    "basis",
    "received_host_ns",
    "received_utc_ns",
)


@dataclass(frozen=True)
class NewOp:
    """An operation that was checked and stamped; `host_ns` is CLOCK_MONOTONIC of the capture computer."""

    op_id: str
    device: str
    seq: int
    actor: str
    subject: str
    kind: str
    body: dict[str, Any]
    host_ns: int
    uncertainty_ns: int
    basis: str
    received_host_ns: int
    received_utc_ns: int
    clock: dict[str, Any] = field(default_factory=dict)
    seen: int = 0


def append(connection: Connection, new: NewOp) -> tuple[dict[str, Any], bool]:
    """Append an operation, or find it there; return it as stored and whether it was there before.

    Call inside `Database.writing`. Raises BadOperation when the device used the sequence number for another one.
    """
    if (stored := find(connection, new.op_id)) is not None:
        return stored, True
    _refuse_second_use(connection, new)
    last = connection.execute(select(table.c.n, table.c.hash).order_by(table.c.n.desc()).limit(1)).first()
    values = {
        **{name: getattr(new, name) for name in _HASHED if name not in ("n", "body", "clock")},
        "n": last.n + 1 if last else 1,
        "body": _text(new.body),
        "clock": _text(new.clock),
        "prev": last.hash if last else FIRST,
    }
    values["hash"] = _hash(values)
    connection.execute(insert(table).values(values))
    return _as_op(values), False


def _refuse_second_use(connection: Connection, new: NewOp) -> None:
    used = select(table.c.op_id).where(table.c.device == new.device, table.c.seq == new.seq)
    if (other := connection.execute(used).scalar()) is not None:
        raise BadOperation(f"sequence number {new.seq} of this device was used for operation {other}")


def next_seq(connection: Connection, device: str = SERVER) -> int:
    """Return the next sequence number of a device."""
    return 1 + (
        connection.execute(select(func.max(table.c.seq)).where(table.c.device == device)).scalar() or 0
    )


def find(connection: Connection, op_id: str) -> dict[str, Any] | None:
    """Return a stored operation."""
    row = connection.execute(select(table).where(table.c.op_id == op_id)).first()
    return _as_op(row._asdict()) if row else None


def ops_of(connection: Connection, subject: str, *, after: int = 0) -> list[dict[str, Any]]:
    """Return the operations on one subject in the order of the log."""
    asked = select(table).where(table.c.subject == subject, table.c.n > after).order_by(table.c.n)
    return [_as_op(row._asdict()) for row in connection.execute(asked)]


def everything(connection: Connection) -> Iterator[dict[str, Any]]:
    """Yield the whole log in its order."""
    for row in connection.execute(select(table).order_by(table.c.n)):
        yield _as_op(row._asdict())


def newest(connection: Connection, *, before: int | None, count: int) -> list[dict[str, Any]]:
    """Return a page of the log, newest first."""
    asked = select(table).order_by(table.c.n.desc()).limit(count)
    rows = connection.execute(asked if before is None else asked.where(table.c.n < before))
    return [_as_op(row._asdict()) for row in rows]


def first_fault(connection: Connection) -> int | None:
    """Recompute the chain; return the number of the first row that was changed, lost or added, or None."""
    previous, expected = FIRST, 1
    for row in connection.execute(select(table).order_by(table.c.n)):
        if row.n != expected or row.prev != previous or row.hash != _hash(_columns(row)):
            return expected
        previous, expected = row.hash, expected + 1
    return None


def _columns(row: Row[Any]) -> dict[str, Any]:
    return row._asdict()


def _hash(values: dict[str, Any]) -> str:
    text = json.dumps([values["prev"], *(values[name] for name in _HASHED)], ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _text(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _as_op(values: dict[str, Any]) -> dict[str, Any]:
    return {**values, "body": json.loads(values["body"]), "clock": json.loads(values["clock"])}

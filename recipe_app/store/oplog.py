"""The log: operations are appended once, numbered without a gap, each row carrying the hash of the row before it.

It is the audit log too: who did what on which device, when, and nothing can be changed or taken out unnoticed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, func, insert, or_, select, tuple_

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

    Call inside `Database.writing`.
    """
    ((stored, known),) = append_all(connection, [new])
    return stored, known


def append_all(connection: Connection, new: Sequence[NewOp]) -> list[tuple[dict[str, Any], bool]]:
    """Append operations in their order, in four statements however many they are.

    For each the stored operation and whether it was there before. A device that lost its memory counts some numbers
    twice; what comes second gets a number of ours, below 0. Call inside `Database.writing`.
    """
    stored, used = _there(connection, new)
    last = connection.execute(select(table.c.n, table.c.hash).order_by(table.c.n.desc()).limit(1)).first()
    n, previous = (last.n, last.hash) if last else (0, FIRST)
    rows: list[dict[str, Any]] = []
    results: list[tuple[dict[str, Any], bool]] = []
    lowest: dict[str, int] = {}
    for one in new:
        if (found := stored.get(one.op_id)) is not None:
            results.append((found, True))
            continue
        if (one.device, one.seq) in used:
            lowest[one.device] = (lowest.get(one.device) or _lowest(connection, one.device)) - 1
            one = replace(one, seq=lowest[one.device], clock={**one.clock, "seq": one.seq})
        row = _row(one, n + 1, previous)
        n, previous = n + 1, row["hash"]
        rows.append(row)
        used.add((one.device, one.seq))
        stored[one.op_id] = _as_op(row)
        results.append((stored[one.op_id], False))
    if rows:
        connection.execute(insert(table), rows)
    return results


def _there(
    connection: Connection, new: Sequence[NewOp]
) -> tuple[dict[str, dict[str, Any]], set[tuple[str, int]]]:
    """Find the operations that are stored already, and the sequence numbers that were used already."""
    ids, places = [one.op_id for one in new], [(one.device, one.seq) for one in new]
    same = connection.execute(select(table).where(table.c.op_id.in_(ids)))
    stored = {row.op_id: as_op(row) for row in same}
    taken = select(table.c.device, table.c.seq).where(tuple_(table.c.device, table.c.seq).in_(places))
    return stored, {(row.device, row.seq) for row in connection.execute(taken)}


def _lowest(connection: Connection, device: str) -> int:
    lowest = connection.execute(select(func.min(table.c.seq)).where(table.c.device == device)).scalar()
    return min(lowest or 0, 0)


def _row(new: NewOp, n: int, previous: str) -> dict[str, Any]:
    values = {
        **{name: getattr(new, name) for name in _HASHED if name not in ("n", "body", "clock")},
        "n": n,
        "body": _text(new.body),
        "clock": _text(new.clock),
        "prev": previous,
    }
    values["hash"] = _hash(values)
    return values


def known_ids(connection: Connection, op_ids: Sequence[str]) -> set[str]:
    """Return which operations are stored already."""
    return set(connection.execute(select(table.c.op_id).where(table.c.op_id.in_(op_ids))).scalars())


def next_seq(connection: Connection, device: str = SERVER) -> int:
    """Return the next sequence number of a device."""
    return 1 + (
        connection.execute(select(func.max(table.c.seq)).where(table.c.device == device)).scalar() or 0
    )


def ops_of(connection: Connection, subject: str, *, after: int = 0) -> list[dict[str, Any]]:
    """Return the operations on one subject in the order of the log."""
    asked = select(table).where(table.c.subject == subject, table.c.n > after).order_by(table.c.n)
    return [as_op(row) for row in connection.execute(asked)]


def ops_beyond(connection: Connection, known: Mapping[str, int]) -> dict[str, list[dict[str, Any]]]:
    """Return, for each subject, its operations after the number that is known of it, in one statement."""
    found: dict[str, list[dict[str, Any]]] = {subject: [] for subject in known}
    fresh = [subject for subject, after in known.items() if not after]
    later = {subject: after for subject, after in known.items() if after}
    asked: list[ColumnElement[bool]] = [table.c.subject.in_(fresh)] if fresh else []
    if later:
        asked.append(table.c.subject.in_(later) & (table.c.n > min(later.values())))
    if asked:
        for row in connection.execute(select(table).where(or_(*asked)).order_by(table.c.n)):
            if row.n > known[row.subject]:
                found[row.subject].append(as_op(row))
    return found


def everything(connection: Connection) -> Iterator[dict[str, Any]]:
    """Yield the whole log in its order."""
    for row in connection.execute(select(table).order_by(table.c.n)):
        yield as_op(row)


def newest(connection: Connection, *, before: int | None, count: int, **equal: str) -> list[dict[str, Any]]:
    """Return a page of the log, newest first; of some columns only what equals, where something is given."""
    wanted = [table.c[name] == value for name, value in equal.items() if value]
    wanted += [] if before is None else [table.c.n < before]
    asked = select(table).where(*wanted).order_by(table.c.n.desc()).limit(count)
    return [as_op(row) for row in connection.execute(asked)]


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


def as_op(row: Row[Any]) -> dict[str, Any]:
    """Return a row of the log as an operation."""
    return _as_op(row._asdict())


def _as_op(values: dict[str, Any]) -> dict[str, Any]:
    return {**values, "body": json.loads(values["body"]), "clock": json.loads(values["clock"])}

"""The log: operations are appended once, numbered without gaps, each row with the hash of the row before it.

It is also the audit log: who did what on which device and when; any change or removal is detected. The chain is
keyed with the installation's secret (HMAC-SHA-256). It covers a salted hash of each row's content, so that a
withdrawal can destroy the content without breaking the chain.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from sqlalchemy import ColumnElement, Connection, Row, func, insert, or_, select, tuple_, update

from kitchensync.operations.session_state import Op
from kitchensync.recipe_app.store.tables import op as table

FIRST = "0" * 64  # hash before the first row, as long as a SHA-256
SERVER = "server"
"""The device name of the server's own operations."""
DESTROYED = "destroyed"
"""The kind of operation that lists rows with destroyed content: `numbers`, ranges (first, last)."""
AT_A_TIME = 100  # one row may hold a whole folder of annotations
KEY = "log_key"
"""The engine option with the installation's secret."""

_HASHED = (
    *("n", "op_id", "device", "seq", "actor", "subject", "kind", "content_hash", "seen", "host_ns"),
    *("uncertainty_ns", "basis", "received_host_ns", "received_utc_ns"),
)


IS_KEPT = table.c.salt != ""
"""Condition: the row's content was not destroyed."""


@dataclass(frozen=True)
class NewOp:
    """A checked operation with its timestamp; `host_ns` is CLOCK_MONOTONIC of the capture computer."""

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


def append_all(connection: Connection, new: Sequence[NewOp]) -> list[tuple[Op, bool]]:
    """Append operations in order, with four statements for any number of them.

    Return each stored operation and whether it existed before. A device that lost its storage may reuse sequence
    numbers; a reused number is replaced by one below 0. Call inside `Database.writing`.
    """
    stored, used = _existing(connection, new)
    n, previous = head(connection)
    key = _key(connection)
    rows: list[dict[str, Any]] = []
    results: list[tuple[Op, bool]] = []
    lowest: dict[str, int] = {}
    for op in new:
        if (existing := stored.get(op.op_id)) is not None:
            results.append((existing, True))
            continue
        if (op.device, op.seq) in used:
            if op.device not in lowest:
                query = select(func.min(table.c.seq)).where(table.c.device == op.device)
                lowest[op.device] = min(connection.execute(query).scalar() or 0, 0)
            lowest[op.device] -= 1
            op = replace(op, seq=lowest[op.device], clock={**op.clock, "seq": op.seq})
        row = _row(op, n + 1, previous, key)
        n, previous = n + 1, row["hash"]
        rows.append(row)
        used.add((op.device, op.seq))
        stored[op.op_id] = as_op(row)
        results.append((stored[op.op_id], False))
    if rows:
        connection.execute(insert(table), rows)
    return results


def _existing(connection: Connection, new: Sequence[NewOp]) -> tuple[dict[str, Op], set[tuple[str, int]]]:
    """Return the operations that are already stored, and the sequence numbers that are already used."""
    ids, places = [op.op_id for op in new], [(op.device, op.seq) for op in new]
    same = connection.execute(select(table).where(table.c.op_id.in_(ids)))
    stored = {row.op_id: as_op(row._mapping) for row in same}
    query = select(table.c.device, table.c.seq).where(tuple_(table.c.device, table.c.seq).in_(places))
    return stored, {(row.device, row.seq) for row in connection.execute(query)}


def head(connection: Connection) -> tuple[int, str]:
    """Return the number and hash of the last row."""
    last = connection.execute(select(table.c.n, table.c.hash).order_by(table.c.n.desc()).limit(1)).first()
    return (last.n, last.hash) if last else (0, FIRST)


def _row(new: NewOp, n: int, previous: str, key: bytes) -> dict[str, Any]:
    values = {
        **{name: getattr(new, name) for name in _HASHED if name not in ("n", "content_hash")},
        "n": n,
        "body": _text(new.body),
        "clock": _text(new.clock),
        "salt": secrets.token_hex(16),
        "prev": previous,
    }
    values["content_hash"] = content_hash(values)
    values["hash"] = row_hash(values, key)
    return values


def _key(connection: Connection) -> bytes:
    key: bytes = connection.get_execution_options()[KEY]
    return key


def next_seq(connection: Connection, device: str = SERVER) -> int:
    """Return the next sequence number of a device."""
    return 1 + (
        connection.execute(select(func.max(table.c.seq)).where(table.c.device == device)).scalar() or 0
    )


def ops_of(connection: Connection, subject: str) -> list[Op]:
    """Return the operations of a subject in log order."""
    query = select(table).where(table.c.subject == subject, IS_KEPT).order_by(table.c.n)
    return [as_op(row._mapping) for row in connection.execute(query)]


def ops_beyond(connection: Connection, after_n: Mapping[str, int]) -> dict[str, list[Op]]:
    """Return the operations of each subject after its known number, with one statement."""
    ops: dict[str, list[Op]] = {subject: [] for subject in after_n}
    fresh = [subject for subject, after in after_n.items() if not after]
    later = {subject: after for subject, after in after_n.items() if after}
    conditions: list[ColumnElement[bool]] = [table.c.subject.in_(fresh)] if fresh else []
    if later:
        conditions.append(table.c.subject.in_(later) & (table.c.n > min(later.values())))
    if conditions:
        for row in connection.execute(select(table).where(or_(*conditions), IS_KEPT).order_by(table.c.n)):
            if row.n > after_n[row.subject]:
                ops[row.subject].append(as_op(row._mapping))
    return ops


def everything(connection: Connection) -> Iterator[Op]:
    """Yield the whole log in order, without destroyed rows."""
    for row in _in_order(connection, IS_KEPT):
        yield as_op(row._mapping)


def _in_order(connection: Connection, *conditions: ColumnElement[bool]) -> Iterator[Row[Any]]:
    """Yield rows of the log in batches of `AT_A_TIME`; the connection may write meanwhile."""
    query = select(table).where(*conditions).order_by(table.c.n).execution_options(yield_per=AT_A_TIME)
    with connection.execute(query) as rows:
        yield from rows


def newest(connection: Connection, *, before: int | None, count: int, **equal: str) -> list[Op]:
    """Return a page of the log, newest first, filtered by non-empty values of `equal`."""
    conditions = [table.c[name] == value for name, value in equal.items() if value]
    conditions += [] if before is None else [table.c.n < before]
    query = select(table).where(*conditions).order_by(table.c.n.desc()).limit(count)
    return [as_op(row._mapping) for row in connection.execute(query)]


def first_fault(connection: Connection) -> int | None:
    """Verify the chain; return the number of the first row that was changed, lost or added, or None.

    An empty row is valid if a later row lists it as destroyed.
    """
    key, previous, expected = _key(connection), FIRST, 1
    empty: set[int] = set()
    for row in _in_order(connection):
        values = row._asdict()
        if (
            row.n != expected
            or row.prev != previous
            or not hmac.compare_digest(row.hash, row_hash(values, key))
        ):
            return expected
        if not row.salt and not row.body and not row.clock:
            empty.add(row.n)
        elif row.content_hash != content_hash(values):
            return expected
        elif row.kind == DESTROYED:
            empty -= numbers_in(json.loads(row.body))
        previous, expected = row.hash, expected + 1
    return min(empty, default=None)


def rebuild_chain(connection: Connection) -> int | None:
    """Chain the existing rows with this installation's secret.

    Return the number of the first row that does not follow the previous one or does not match its content hash.
    """
    key, before, after, expected = _key(connection), FIRST, FIRST, 1
    for row in _in_order(connection):
        values = row._asdict()
        is_whole = row.content_hash == content_hash(values) or not (row.salt or row.body or row.clock)
        if row.n != expected or row.prev != before or not is_whole:
            return expected
        before, values["prev"] = row.hash, after
        after = row_hash(values, key)
        connection.execute(update(table).where(table.c.n == row.n).values(prev=values["prev"], hash=after))
        expected += 1
    return None


def numbers_in(body: Mapping[str, Any]) -> set[int]:
    """Return the numbers of the rows that an operation of the kind `destroyed` lists."""
    return {n for first, last in body["numbers"] for n in range(first, last + 1)}


def content_hash(values: Mapping[str, Any]) -> str:
    """Return the salted hash of a row's content."""
    return hashlib.sha256("\n".join(values[name] for name in ("salt", "body", "clock")).encode()).hexdigest()


def row_hash(values: Mapping[str, Any], key: bytes) -> str:
    """Return the hash of a row and the previous hash, keyed with the installation's secret."""
    text = json.dumps([values["prev"], *(values[name] for name in _HASHED)], ensure_ascii=False)
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def _text(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def as_op(values: Mapping[Any, Any]) -> Op:
    """Return a row of the log as an operation."""
    parsed = {name: json.loads(values[name] or "{}") for name in ("body", "clock")}
    columns = {name: value for name, value in values.items() if name not in ("salt", "content_hash")}
    return cast("Op", columns | parsed)

"""The log: operations are appended once, numbered without a gap, each row carrying the hash of the row before it.

It is the audit log too: who did what on which device, when, and nothing can be changed or taken out unnoticed. The
chain is keyed with the installation's secret (HMAC-SHA-256). Of what was said it covers a salted hash, so that a
withdrawal can destroy the words and the chain still holds.
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

FIRST = "0" * 64
SERVER = "server"
"""The device name of operations that the server makes itself."""
DESTROYED = "destroyed"
"""The kind of operation that says which rows lost what they said: `numbers`, pairs of first and last."""
AT_A_TIME = 100
KEY = "log_key"
"""The option of an engine that holds the installation's secret."""

_HASHED = (
    *("n", "op_id", "device", "seq", "actor", "subject", "kind", "content_hash", "seen", "host_ns"),
    *("uncertainty_ns", "basis", "received_host_ns", "received_utc_ns"),
)


IS_KEPT = table.c.salt != ""
"""What a row said was not destroyed."""


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


def append_all(connection: Connection, new: Sequence[NewOp]) -> list[tuple[Op, bool]]:
    """Append operations in their order, in four statements however many they are.

    For each the stored operation and whether it was there before. A device that lost its memory counts some numbers
    twice; what comes second gets a number of ours, below 0. Call inside `Database.writing`.
    """
    stored, used = _there(connection, new)
    n, previous = head(connection)
    key = _key(connection)
    rows: list[dict[str, Any]] = []
    results: list[tuple[Op, bool]] = []
    lowest: dict[str, int] = {}
    for one in new:
        if (found := stored.get(one.op_id)) is not None:
            results.append((found, True))
            continue
        if (one.device, one.seq) in used:
            if one.device not in lowest:
                asked = select(func.min(table.c.seq)).where(table.c.device == one.device)
                lowest[one.device] = min(connection.execute(asked).scalar() or 0, 0)
            lowest[one.device] -= 1
            one = replace(one, seq=lowest[one.device], clock={**one.clock, "seq": one.seq})
        row = _row(one, n + 1, previous, key)
        n, previous = n + 1, row["hash"]
        rows.append(row)
        used.add((one.device, one.seq))
        stored[one.op_id] = as_op(row)
        results.append((stored[one.op_id], False))
    if rows:
        connection.execute(insert(table), rows)
    return results


def _there(connection: Connection, new: Sequence[NewOp]) -> tuple[dict[str, Op], set[tuple[str, int]]]:
    """Find the operations that are stored already, and the sequence numbers that were used already."""
    ids, places = [one.op_id for one in new], [(one.device, one.seq) for one in new]
    same = connection.execute(select(table).where(table.c.op_id.in_(ids)))
    stored = {row.op_id: as_op(row._mapping) for row in same}
    taken = select(table.c.device, table.c.seq).where(tuple_(table.c.device, table.c.seq).in_(places))
    return stored, {(row.device, row.seq) for row in connection.execute(taken)}


def head(connection: Connection) -> tuple[int, str]:
    """Return number and hash of the last row."""
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


def ops_of(connection: Connection, subject: str, *, after: int = 0) -> list[Op]:
    """Return the operations on one subject in the order of the log."""
    asked = select(table).where(table.c.subject == subject, table.c.n > after, IS_KEPT).order_by(table.c.n)
    return [as_op(row._mapping) for row in connection.execute(asked)]


def ops_beyond(connection: Connection, known: Mapping[str, int]) -> dict[str, list[Op]]:
    """Return, for each subject, its operations after the number that is known of it, in one statement."""
    found: dict[str, list[Op]] = {subject: [] for subject in known}
    fresh = [subject for subject, after in known.items() if not after]
    later = {subject: after for subject, after in known.items() if after}
    asked: list[ColumnElement[bool]] = [table.c.subject.in_(fresh)] if fresh else []
    if later:
        asked.append(table.c.subject.in_(later) & (table.c.n > min(later.values())))
    if asked:
        for row in connection.execute(select(table).where(or_(*asked), IS_KEPT).order_by(table.c.n)):
            if row.n > known[row.subject]:
                found[row.subject].append(as_op(row._mapping))
    return found


def everything(connection: Connection) -> Iterator[Op]:
    """Yield the whole log in its order, without what was destroyed."""
    for row in _in_order(connection, IS_KEPT):
        yield as_op(row._mapping)


def _in_order(connection: Connection, *wanted: ColumnElement[bool]) -> Iterator[Row[Any]]:
    """Yield rows of the log, few of them in memory; the connection may write meanwhile."""
    asked = select(table).where(*wanted).order_by(table.c.n).execution_options(yield_per=AT_A_TIME)
    with connection.execute(asked) as rows:
        yield from rows


def newest(connection: Connection, *, before: int | None, count: int, **equal: str) -> list[Op]:
    """Return a page of the log, newest first; of some columns only what equals, where something is given."""
    wanted = [table.c[name] == value for name, value in equal.items() if value]
    wanted += [] if before is None else [table.c.n < before]
    asked = select(table).where(*wanted).order_by(table.c.n.desc()).limit(count)
    return [as_op(row._mapping) for row in connection.execute(asked)]


def first_fault(connection: Connection) -> int | None:
    """Recompute the chain; return the number of the first row that was changed, lost or added, or None.

    A row without what it said is sound where a later one says that it was destroyed.
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


def chain_anew(connection: Connection) -> int | None:
    """Chain the rows that are there with this installation's secret.

    Return the number of the first row that does not follow the one before it, or not hold what it was hashed with.
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
    """Return the rows that an operation of the kind `destroyed` names."""
    return {n for first, last in body["numbers"] for n in range(first, last + 1)}


def content_hash(values: Mapping[str, Any]) -> str:
    """Hash what was said in a row, with its salt."""
    return hashlib.sha256("\n".join(values[name] for name in ("salt", "body", "clock")).encode()).hexdigest()


def row_hash(values: Mapping[str, Any], key: bytes) -> str:
    """Hash a row and the hash before it with the installation's secret."""
    text = json.dumps([values["prev"], *(values[name] for name in _HASHED)], ensure_ascii=False)
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def _text(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def as_op(values: Mapping[Any, Any]) -> Op:
    """Return the values of a row of the log as an operation."""
    said = {name: json.loads(values[name] or "{}") for name in ("body", "clock")}
    known = {name: value for name, value in values.items() if name not in ("salt", "content_hash")}
    return cast("Op", known | said)

"""The app's records: accept operations, return the state of recordings, look up rows."""

from __future__ import annotations

import contextlib
import json
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar, cast

from sqlalchemy import Connection, Table, delete, insert, select

from kitchensync.operations.event_lines import folder_of
from kitchensync.operations.reduce import reduce_log
from kitchensync.operations.session_state import Frozen, Op, State
from kitchensync.recipe_app.store import oplog, projections, tables
from kitchensync.recipe_app.store.database import Database
from kitchensync.recipe_app.store.oplog import SERVER, NewOp
from kitchensync.task_graphs.errors import NotFound

T = TypeVar("T")
R = TypeVar("R")


class _PendingWrite(Generic[T, R]):
    """The items of one caller, and their results."""

    def __init__(self, items: Sequence[T]) -> None:
        self.items = items
        self.results: list[R] | None = None
        self.error: Exception | None = None


class GroupedWrites(Generic[T, R]):
    """Groups concurrent writes: the caller that gets the turn writes for all waiting callers.

    `write` returns a result for each item in order, in a transaction that is committed when it returns. If it fails
    for several callers, each is retried alone, so that a failure affects only its caller.
    """

    def __init__(self, write: Callable[[Sequence[T]], list[R]]) -> None:
        self._write = write
        self._turn, self._lock = threading.Lock(), threading.Lock()
        self._waiting: list[_PendingWrite[T, R]] = []

    def put(self, items: Sequence[T]) -> list[R]:
        """Write items in order and return their results, or raise the error of `write`."""
        mine: _PendingWrite[T, R] = _PendingWrite(items)
        with self._lock:
            self._waiting.append(mine)
        with self._turn:
            if mine.results is None and mine.error is None:
                with self._lock:
                    writes, self._waiting = self._waiting, []
                self._write_all(writes)
        if mine.error is not None:
            raise mine.error
        return mine.results or []

    def _write_all(self, writes: list[_PendingWrite[T, R]]) -> None:
        try:
            results = iter(self._write([item for write in writes for item in write.items]))
        except Exception as error:  # noqa: BLE001  each caller raises it, or tries alone
            if len(writes) == 1:
                writes[0].error = error
                return
            for write in writes:
                self._write_all([write])
            return
        for write in writes:
            write.results = [next(results) for _ in write.items]


BATCH = 500  # one transaction each; other writers get a turn in between
GONE = cast("Op", {})
KEPT = 256
"""Number of recordings whose operations are cached."""


class AppRecords:
    """All records of the app in one database, with its two clocks as parameters."""

    def __init__(self, database: Database, *, now_ns: Callable[[], int], utc_ns: Callable[[], int]) -> None:
        self.database, self.now_ns, self.utc_ns = database, now_ns, utc_ns
        self.changes = 0
        "Counts changes other than operations of recordings, to invalidate caches of access rights."
        self._kept: OrderedDict[str, list[Op]] = OrderedDict()
        self._lock = threading.Lock()
        self._heeded = 0
        self._together: GroupedWrites[NewOp, tuple[Op, bool]] = GroupedWrites(self._accept)

    def accept(self, new: Sequence[NewOp]) -> list[tuple[Op, bool]]:
        """Append operations; return each as stored (`GONE` if its subject is destroyed) and whether it was known.

        Concurrent calls are committed together. Operations of a recording with a folder are marked to be filed into
        its events. All are synced to disk when this returns.
        """
        return self._together.put(new)

    def _accept(self, new: Sequence[NewOp]) -> list[tuple[Op, bool]]:
        with self.database.writing() as connection:
            log, subjects_of_new = tables.op.c, {op.subject for op in new}
            destroyed = select(log.subject).where(
                log.subject.in_(subjects_of_new), log.kind == oplog.DESTROYED
            )
            gone = set(connection.execute(destroyed).scalars())
            kept = iter(oplog.append_all(connection, [op for op in new if op.subject not in gone]))
            appended = [(GONE, True) if op.subject in gone else next(kept) for op in new]
            fresh = [op for op, known in appended if not known]
            subjects = self._beyond(connection, {op["subject"] for op in fresh})
            folders = {subject for subject, ops in subjects.items() if folder_of(ops) is not None}
            if waiting := [{"n": op["n"]} for op in fresh if op["subject"] in folders]:
                connection.execute(insert(tables.unfiled), waiting)
            errors = {op["subject"] for op in fresh if op["kind"] in projections.OF_ERRORS}
            projections.apply_recordings(connection, subjects, errors=errors)
        self._keep(subjects)
        return appended

    def note(self, kind: str, subject: str, body: dict[str, Any], *, actor: str, op_id: str = "") -> Op:
        """Append an operation of the server (people, devices, recipes, recordings)."""
        with self.changing() as connection:
            return self.note_within(connection, kind, subject, body, actor=actor, op_id=op_id)

    def note_within(
        self,
        connection: Connection,
        kind: str,
        subject: str,
        body: dict[str, Any],
        *,
        actor: str,
        op_id: str = "",
        seen: int = 0,
    ) -> Op:
        """Append an operation of the server within a larger transaction."""
        now_ns = self.now_ns()
        new = NewOp(
            op_id=op_id or new_id(self.utc_ns()),
            device=SERVER,
            seq=oplog.next_seq(connection),
            actor=actor,
            subject=subject,
            kind=kind,
            body=body,
            host_ns=now_ns,
            uncertainty_ns=0,
            basis="server",
            received_host_ns=now_ns,
            received_utc_ns=self.utc_ns(),
            seen=seen,
        )
        ((stored, known),) = oplog.append_all(connection, [new])
        if not known:
            if self._folder_within(connection, stored) is not None:
                connection.execute(insert(tables.unfiled).values(n=stored["n"]))
            projections.apply(connection, stored, self._ops_within)
        return stored

    def note_all(self, made: Sequence[NewOp]) -> int:
        """Append any number of operations as the server; return how many are new.

        Their device becomes the server, numbered in order. Other writers get a turn between two batches. After an
        interruption the call can be repeated; known operations are skipped.
        """
        return sum(self._note_batch(made[start : start + BATCH]) for start in range(0, len(made), BATCH))

    def _note_batch(self, made: Sequence[NewOp]) -> int:
        with self.changing() as connection:
            log = tables.op.c.op_id
            query = select(log).where(log.in_([op.op_id for op in made]))
            known = set(connection.execute(query).scalars())
            seq = oplog.next_seq(connection)
            new = [op for op in made if op.op_id not in known]
            ours = [replace(op, device=SERVER, seq=seq + place) for place, op in enumerate(new)]
            if not ours:
                return 0
            fresh = [op for op, _ in oplog.append_all(connection, ours)]
            for op in fresh:
                projections.apply_desk(connection, op)
            subjects = self._beyond(connection, {op["subject"] for op in fresh})
            projections.apply_recordings(connection, subjects, errors=set(subjects))
        return len(fresh)

    def _folder_within(self, connection: Connection, op: Op) -> str | None:
        if op["kind"] == "recording":
            folder: str | None = op["body"]["folder"]
            return folder
        query = select(tables.recording.c.folder).where(tables.recording.c.id == op["subject"])
        return connection.execute(query).scalar()

    def give_folder(self, recording: str, folder: str, *, actor: str) -> None:
        """Log that devices record into a folder, and mark all earlier operations to be filed into it."""
        body = {"action": "start", "folder": folder, "reasons": []}
        with self.database.writing() as connection:
            self.note_within(connection, "capture", recording, body, actor=actor)
            waiting = select(tables.unfiled.c.n)
            unfiled = select(tables.op.c.n).where(
                tables.op.c.subject == recording, tables.op.c.n.not_in(waiting)
            )
            connection.execute(insert(tables.unfiled).from_select(["n"], unfiled))

    def ops(self, subject: str) -> list[Op]:
        """Return the operations on a recording, in the order of the log."""
        with self.database.reading() as connection:
            ops = self._ops_within(connection, subject)
        self._keep({subject: ops})
        return ops

    def _ops_within(self, connection: Connection, subject: str) -> list[Op]:
        return self._beyond(connection, {subject})[subject]

    def _beyond(self, connection: Connection, subjects: set[str]) -> dict[str, list[Op]]:
        """Return cached operations with newer ones of the log, which other processes write too."""
        with self._lock:
            kept = {subject: self._kept.get(subject, []) for subject in subjects}
        known = {subject: ops[-1]["n"] if ops else 0 for subject, ops in kept.items()}
        more = oplog.ops_beyond(connection, known)
        current = {}
        for subject, cached in kept.items():
            ops = cached + more[subject]
            last = max((place for place, op in enumerate(ops) if op["kind"] == oplog.DESTROYED), default=0)
            current[subject] = ops[last:]  # what was before the last destruction no longer counts
        return current

    def _keep(self, subjects: dict[str, list[Op]]) -> None:
        with self._lock:
            for subject, ops in subjects.items():
                known = self._kept.get(subject, [])
                if not known or (
                    ops and ops[-1]["n"] >= known[-1]["n"]
                ):  # a slower reader has older operations
                    self._kept[subject] = ops
                self._kept.move_to_end(subject)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)

    def heed_destroyed(self) -> None:
        """Drop from the cache what another process destroyed since the last call."""
        op = tables.op
        query = select(op.c.n, op.c.subject).where(op.c.n > self._heeded, op.c.kind == oplog.DESTROYED)
        with self.database.reading() as connection:
            last, _ = oplog.head(connection)
            rows = connection.execute(query).all()
        for row in rows:
            self.forget(row.subject)
        self.changes += bool(rows)  # people may be among them
        self._heeded = last

    def forget(self, subject: str) -> None:
        """Drop a destroyed subject from the cache."""
        with self._lock:
            self._kept.pop(subject, None)

    def kept(self, subject: str) -> list[Op]:
        """Return the cached operations of a recording, which are complete up to the last `accept`."""
        with self._lock:
            return self._kept.get(subject, [])

    def frozen(self, recording: str) -> Frozen | None:
        """Return the body that was frozen when a recording was chosen, which never changes; None without one."""
        ops = self.kept(recording) or self.ops(recording)
        body = next((op["body"] for op in ops if op["kind"] == "recording"), None)
        return cast("Frozen | None", body)

    def begun(self, recording: str) -> list[Op]:
        """Return the operations of a recording. Raises NotFound if it was not begun."""
        ops = self.ops(recording)
        if not any(op["kind"] == "recording" for op in ops):
            raise NotFound(
                "no recording {name!r}; choose a recipe on the tablet to begin one", name=recording[:80]
            )
        return ops

    def state(self, recording: str) -> State:
        """Return the state of a recording. Raises NotFound."""
        return reduce_log(self.begun(recording))

    def row(self, table: Table, key: str) -> dict[str, Any] | None:
        """Return a row by its primary key."""
        column = next(iter(table.primary_key.columns))
        with self.database.reading() as connection:
            row = connection.execute(select(table).where(column == key)).first()
        return row._asdict() if row else None

    def pseudonym(self, person: str) -> str:
        """Return the pseudonym of a person; empty if unknown."""
        row = self.row(tables.person, person)
        return str(row["pseudonym"]) if row else ""

    def rows(
        self, table: Table, *conditions: Any, order: Any = None, limit: int = 1000
    ) -> list[dict[str, Any]]:
        """Return the rows that meet the conditions."""
        query = select(table).where(*conditions).limit(limit)
        with self.database.reading() as connection:
            rows = connection.execute(query if order is None else query.order_by(order))
            return [row._asdict() for row in rows]

    def waiting(self) -> list[Op]:
        """Return the operations that are not yet filed into their recording's events, in log order."""
        query = select(tables.op).join(tables.unfiled, tables.unfiled.c.n == tables.op.c.n)
        with self.database.reading() as connection:
            return [oplog.as_op(row._mapping) for row in connection.execute(query.order_by(tables.op.c.n))]

    def filed(self, numbers: Sequence[int]) -> None:
        """Mark operations as filed into their recording's events."""
        with self.database.writing() as connection:
            connection.execute(delete(tables.unfiled).where(tables.unfiled.c.n.in_(numbers)))

    @contextlib.contextmanager
    def changing(self) -> Iterator[Connection]:
        """Open a transaction for changes of people, secrets, sessions and codes."""
        with self.database.writing() as connection:
            yield connection
        self.changes += 1


def roles_of(person: dict[str, Any]) -> list[str]:
    """Return the roles of a row of `person`."""
    roles: list[str] = json.loads(person["roles"])
    return roles


def is_admin(person: dict[str, Any]) -> bool:
    """Return whether a row of `person` is an active admin."""
    return "admin" in roles_of(person) and person["active"]


def new_id(utc_ns: int) -> str:
    """Make a UUID version 7, which sorts by time (RFC 9562, section 5.7)."""
    milliseconds = (utc_ns // 1_000_000) & (2**48 - 1)
    random = uuid.uuid4().int & (2**80 - 1)
    value = (milliseconds << 80) | random
    value = (value & ~(0xF << 76)) | (0x7 << 76)
    value = (value & ~(0x3 << 62)) | (0x2 << 62)
    return str(uuid.UUID(int=value))

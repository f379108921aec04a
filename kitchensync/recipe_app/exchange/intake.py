"""Operations from tablets: check them, put their touches on the capture clock, log them, file them into folders."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from kitchensync.operations.errors import BadOperation
from kitchensync.operations.event_lines import consent_of, event_lines, folder_of
from kitchensync.operations.operation_kinds import Misfit, Operation, checked_body
from kitchensync.operations.reduce import UNDOABLE
from kitchensync.operations.session_state import Frozen, Op
from kitchensync.recipe_app.exchange import touch_clock
from kitchensync.recipe_app.exchange.folders import FolderEvent, Folders
from kitchensync.recipe_app.store import tables
from kitchensync.recipe_app.store.anchors import head_anchor, unfit
from kitchensync.recipe_app.store.app_records import AppRecords
from kitchensync.recipe_app.store.oplog import NewOp
from kitchensync.storage.errors import StorageError
from kitchensync.task_graphs.errors import NotFound


@dataclass(frozen=True)
class Sender:
    """The tablet, who is signed in there, or who brings its dump (`imported`) and may that person correct."""

    device: dict[str, Any]
    actor: str = ""
    imported: bool = False
    corrects: bool = False

    def actor_of(self, operation: Operation) -> str:
        """Report who did it: the person who is signed in, and nobody where the tablet names another."""
        if self.imported or operation.actor in ("", self.actor):
            return self.actor
        return ""

    def said_of(self, operation: Operation) -> dict[str, Any]:
        """Return what is kept beside an operation of how it came: that it was imported, whom the tablet named."""
        said = {"imported": True} if self.imported else {}
        named = operation.actor and operation.actor != self.actor_of(operation)
        return {**said, "named_actor": operation.actor} if named else said


def require_own(ops: Sequence[Op], sender: Sender) -> None:
    """Refuse a tablet that neither began nor joined this recording, unless its person is signed in there."""
    chosen = _chosen(ops)
    known = {chosen["body"].get("device", sender.device["id"]), *(op["device"] for op in ops)}
    if sender.device["id"] not in known and (sender.imported or sender.actor != chosen["actor"]):
        raise BadOperation("this recording is of another tablet; sign in here as the person who cooks")


def require_consent_by_person(operation: Operation, ops: Sequence[Op], sender: Sender) -> None:
    """Refuse an answer to the form of consent by anybody but the signed-in person whose recording it is."""
    person = _chosen(ops)["actor"]
    if operation.kind == "consent" and (
        sender.imported or not sender.actor or sender.actor_of(operation) != person
    ):
        raise BadOperation("consent: only the person who cooks may answer; sign in and answer the form again")


def require_kept_by_person(operation: Operation, ops: Sequence[Op], sender: Sender) -> None:
    """Refuse to take a withdrawal back for anybody but the signed-in person whose recording it is."""
    is_person = sender.actor and sender.actor_of(operation) == _chosen(ops)["actor"]
    if operation.kind == "keep" and (sender.imported or not is_person):
        raise BadOperation("only the person who cooks may take a withdrawal back; sign in as that person")


def require_correcting(ops: Sequence[Op], sender: Sender) -> None:
    """Refuse what a dump adds to a recording that is finished, from somebody who may not correct at the desk."""
    if sender.imported and not sender.corrects and any(op["kind"] == "finish" for op in ops):
        raise BadOperation("this recording is finished; a researcher takes in what changes it")


def require_open_review(operation: Operation, ops: Sequence[Op]) -> None:
    """Refuse changes whose author had received the closing of the review. Raises BadOperation."""
    changes = [op for op in ops if op["kind"] == "close_review"]
    # A change made offline before the tablet received the closing is kept, however late it arrives, because its
    # author could not know. `seen` is the last operation that the tablet had received.
    if (
        operation.kind in UNDOABLE | {"undo"}
        and changes
        and changes[-1]["body"]["closed"]
        and operation.seen >= changes[-1]["n"]
    ):
        raise BadOperation("the review of this recording is closed; ask at the desk to open it again")


def _chosen(ops: Sequence[Op]) -> Op:
    return next(op for op in ops if op["kind"] == "recording")


log = logging.getLogger(__name__)

Receipt = dict[str, Any]
RECEIPT = ("op_id", "n", "host_ns", "uncertainty_ns", "basis")


class Intake:
    """Takes operations in; `clock_id` names this run of the capture computer's clock, `key` signs its answers."""

    def __init__(self, records: AppRecords, folders: Folders, *, clock_id: str, key: bytes) -> None:
        self.records, self.folders, self.clock_id, self._key = records, folders, clock_id, key

    def answer_clock(self) -> dict[str, Any]:
        """Return the capture clock now, signed, so that a touch can be stamped by it later."""
        host_ns = self.records.now_ns()
        signed = touch_clock.signature(self._key, self.clock_id, host_ns)
        return {"host_ns": host_ns, "clock_id": self.clock_id, "signature": signed}

    def accept(
        self,
        operations: Sequence[Operation | Misfit],
        *,
        sender: Sender,
        say: Callable[[Exception], str] = str,
    ) -> list[Receipt]:
        """Log operations in their order; each gets a receipt, or a refusal that a repetition would get too.

        `say` puts a refusal into words.
        """
        receipts: dict[str, Receipt] = {}
        wanted: list[NewOp] = []
        for operation in operations:
            try:
                wanted.append(self._checked(operation, sender))
            except (BadOperation, NotFound) as error:
                receipts[operation.op_id] = {"op_id": operation.op_id, "error": say(error)}
        for new, (stored, known) in zip(wanted, self.records.accept(wanted) if wanted else (), strict=True):
            receipt: Receipt = {key: stored.get(key) for key in RECEIPT} | {"duplicate": known}
            refused = {"op_id": new.op_id, "error": say(_unknown(new.subject))}
            receipts[new.op_id] = receipt if stored else refused
        if any(folder_of(self.records.kept(recording)) for recording in {new.subject for new in wanted}):
            self.file()
        return [receipts[operation.op_id] for operation in operations]

    def _checked(self, operation: Operation | Misfit, sender: Sender) -> NewOp:
        if isinstance(operation, Misfit):
            operation.refuse()
        frozen = self._frozen(operation.recording, sender.device["kitchen"])
        ops = self._known(operation.recording)
        require_own(ops, sender)
        require_consent_by_person(operation, ops, sender)
        require_kept_by_person(operation, ops, sender)
        require_correcting(ops, sender)
        require_open_review(operation, ops)
        body = checked_body(operation)
        node = body.get("node", body.get("fields", {}).get("node"))
        if node is not None and str(node) not in frozen["steps"]:
            raise BadOperation("step {node} is not in {title}", node=str(node), title=frozen["title"])
        if operation.kind == "checked" and body["override"]:
            raise BadOperation("checked: open points are allowed at the desk, by an admin")
        now_ns = self.records.now_ns()
        stamp = touch_clock.inside(
            self._stamp(operation, now_ns), begun_ns=self._begun_ns(frozen), now_ns=now_ns
        )
        # What the client said about time is kept untouched: it may be evaluated again.
        clock = operation.model_dump(include={"tapped_ms_ago", "round_trip_ms"}, exclude_none=True)
        if operation.clock:
            clock |= operation.clock.model_dump(exclude_none=True, exclude={"basis", "signature"})
        return NewOp(
            op_id=operation.op_id,
            device=sender.device["id"],
            seq=operation.seq,
            actor=sender.actor_of(operation),
            subject=operation.recording,
            kind=operation.kind,
            body=body,
            host_ns=stamp.host_ns,
            uncertainty_ns=stamp.uncertainty_ns,
            basis=stamp.basis,
            received_host_ns=now_ns,
            received_utc_ns=self.records.utc_ns(),
            clock=clock | sender.said_of(operation),
            seen=operation.seen,
        )

    def recording(self, recording: str, *, kitchen: str | None) -> dict[str, Any]:
        """Return what was frozen of a recording; one of another kitchen is not there. Raises NotFound."""
        ops = self.records.ops(recording)  # another process may have destroyed it
        return {**self._frozen(recording, kitchen), "folder": folder_of(ops)}

    def _frozen(self, recording: str, kitchen: str | None) -> Frozen:
        body = self.records.frozen(recording)
        if body is None or kitchen not in (None, body["kitchen"]):
            raise _unknown(recording)
        return body

    def unfit_anchors(self) -> list[str]:
        """Return the recordings whose anchors the log does not fit."""
        with self.records.database.reading() as connection:
            return unfit(connection, self.folders.anchors(), self._key)

    def require_own(self, recording: str, sender: Sender) -> None:
        """Refuse a tablet that has no part in a recording. Raises NotFound, BadOperation."""
        self._frozen(recording, sender.device["kitchen"])
        require_own(self._known(recording), sender)

    def _known(self, recording: str) -> list[Op]:
        """Return the operations so far; once cooking has ended also what the desk added, which no memory holds."""
        kept = self.records.kept(recording)
        is_over = any(op["kind"] in ("end", "finish") for op in kept)
        return self.records.ops(recording) if is_over or not kept else kept

    def _begun_ns(self, frozen: Frozen) -> int:
        """When a recording was chosen, on this run's clock; 0 where it was in an earlier run."""
        begun = frozen.get("begun", {})
        return int(begun["host_ns"]) if begun.get("clock_id") == self.clock_id else 0

    def _stamp(self, operation: Operation, now_ns: int) -> touch_clock.Stamp:
        clock = operation.clock
        if clock is not None and touch_clock.was_answered(
            self._key, self.clock_id, clock.host_ns, clock.signature
        ):
            fields = clock.model_dump(include={"touch_ms", "sent_ms", "received_ms", "host_ns", "basis"})
            return touch_clock.stamp_exchange(touch_clock.Exchange(**fields), now_ns=now_ns)
        if clock is not None and clock.wall_ms is not None:
            age_ms = self.records.utc_ns() / 1e6 - clock.wall_ms
            return touch_clock.stamp_wall(age_ms=age_ms, now_ns=now_ns)
        if operation.tapped_ms_ago is not None:
            trip = operation.round_trip_ms
            return touch_clock.stamp_age(age_ms=operation.tapped_ms_ago, round_trip_ms=trip, now_ns=now_ns)
        return touch_clock.stamp_receipt(now_ns=now_ns)

    def file(self) -> int:
        """Write what waits into the events of its recording; return how many still wait.

        What cannot be written now (a full disk, a folder that is away) stays in the log and is tried again.
        """
        waiting = self.records.waiting()
        filed: list[int] = []
        for op in waiting:
            try:
                self._file(op)
                filed.append(op["n"])
            except (OSError, StorageError, NotFound) as error:
                log.warning("operation %s waits for its recording's folder: %s", op["op_id"], error)
        if filed:
            self.records.filed(filed)
        return len(waiting) - len(filed)

    def _file(self, op: Op) -> None:
        ops = self.records.ops(op["subject"])
        body = next((one["body"] for one in ops if one["kind"] == "recording"), None)
        if body is None:
            return  # destroyed meanwhile
        earlier = {one["op_id"]: one["kind"] for one in ops}
        lines = event_lines(op, cast("Frozen", body), earlier)
        stamps = (op["host_ns"], op["uncertainty_ns"])
        folder = folder_of(ops)
        if folder is None:
            return
        self.folders.append(folder, (FolderEvent(kind, *stamps, op_id, said) for op_id, kind, said in lines))
        if op["kind"] == "consent":
            self._agree(folder, op)
        if (bound := _bound(op)) is not None:
            with self.records.database.reading() as connection:
                self.folders.anchor(folder, bound == "end", head_anchor(connection, self._key))
        if op["kind"] == "withdraw":
            self.folders.withdraw(folder, host_ns=op["host_ns"])
        if op["kind"] == "keep":
            self.folders.keep(folder)
            if agreed := [one for one in ops if one["kind"] == "consent" and one["n"] < op["n"]]:
                self._agree(folder, agreed[-1])
        if op["kind"] == "recording":
            recipe = {key: body[key] for key in ("name", "graph_hash", "order", "seed", "source")}
            said = {"strategy": body["strategy"], "display": body["display"], "certificate": body["script"]}
            who = {}
            if "began_utc_ns" in body:  # the desk put it into the list: no device was told person and kitchen
                kitchen = self.records.row(tables.kitchen, body["kitchen"])
                person = self.records.pseudonym(op["actor"]) or None
                who = {"pseudonym": person, "place": kitchen and kitchen["name"]}
            self.folders.put(folder, {"recipe": recipe, "script": said} | who)

    def _agree(self, folder: str, op: Op) -> None:
        """Let the manifest say what the person agrees to now."""
        facts = {
            "version": op["body"]["version"],
            "language": op["body"].get("language", ""),
            "person": self.records.pseudonym(op["actor"]),
            "utc_ns": op["received_utc_ns"],
        }
        self.folders.agree(folder, consent_of(op["subject"], op["body"]), facts)


def _bound(op: Op) -> str | None:
    """Return whether an operation is at the start or at the end of a recording."""
    action = op["body"].get("action") if op["kind"] == "capture" else None
    if op["kind"] == "recording" or action == "start":
        return "start"
    return "end" if op["kind"] in ("end", "finish") or action is not None else None


def _unknown(recording: str) -> NotFound:
    return NotFound("no recording {name!r}; choose a recipe on the tablet to begin one", name=recording[:80])

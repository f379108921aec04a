"""Operations from tablets: check them, map their touches to the capture clock, log them, file them into folders."""

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
    """The tablet and the person signed in there, or (`imported`) the person who imports its dump."""

    device: dict[str, Any]
    actor: str = ""
    imported: bool = False
    corrects: bool = False

    def actor_of(self, operation: Operation) -> str:
        """Return the signed-in person as the actor, or empty if the tablet names somebody else."""
        if self.imported or operation.actor in ("", self.actor):
            return self.actor
        return ""

    def origin_of(self, operation: Operation) -> dict[str, Any]:
        """Return facts to log with an operation: that it was imported, and whom the tablet named."""
        origin = {"imported": True} if self.imported else {}
        named = operation.actor and operation.actor != self.actor_of(operation)
        return {**origin, "named_actor": operation.actor} if named else origin


def require_own(ops: Sequence[Op], sender: Sender) -> None:
    """Refuse a tablet that did not begin or join this recording, unless its cook is signed in there."""
    chosen = _chosen(ops)
    known = {chosen["body"].get("device", sender.device["id"]), *(op["device"] for op in ops)}
    if sender.device["id"] not in known and (sender.imported or sender.actor != chosen["actor"]):
        raise BadOperation("this recording is of another tablet; sign in here as the person who cooks")


def require_consent_by_person(operation: Operation, ops: Sequence[Op], sender: Sender) -> None:
    """Refuse an answer to the consent form by anybody but the signed-in cook of the recording."""
    person = _chosen(ops)["actor"]
    if operation.kind == "consent" and (
        sender.imported or not sender.actor or sender.actor_of(operation) != person
    ):
        raise BadOperation("consent: only the person who cooks may answer; sign in and answer the form again")


def require_kept_by_person(operation: Operation, ops: Sequence[Op], sender: Sender) -> None:
    """Refuse undoing a withdrawal by anybody but the signed-in cook of the recording."""
    is_person = sender.actor and sender.actor_of(operation) == _chosen(ops)["actor"]
    if operation.kind == "keep" and (sender.imported or not is_person):
        raise BadOperation("only the person who cooks may take a withdrawal back; sign in as that person")


def require_correcting(ops: Sequence[Op], sender: Sender) -> None:
    """Refuse a dump's changes of a finished recording by somebody who may not correct at the desk."""
    if sender.imported and not sender.corrects and any(op["kind"] == "finish" for op in ops):
        raise BadOperation("this recording is finished; a researcher takes in what changes it")


def require_open_review(operation: Operation, ops: Sequence[Op]) -> None:
    """Refuse changes by an author who had received the closing of the review. Raises BadOperation."""
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
    """Accepts operations; `clock_id` identifies this boot of the capture computer, `key` signs clock answers."""

    def __init__(self, records: AppRecords, folders: Folders, *, clock_id: str, key: bytes) -> None:
        self.records, self.folders, self.clock_id, self._key = records, folders, clock_id, key

    def answer_clock(self) -> dict[str, Any]:
        """Return the capture clock now, signed, so that a later touch can be timestamped with it."""
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
        """Log operations in order; each gets a receipt, or a refusal that a repetition would get too.

        `say` returns the text of a refusal.
        """
        receipts: dict[str, Receipt] = {}
        accepted: list[NewOp] = []
        for operation in operations:
            try:
                accepted.append(self._checked(operation, sender))
            except (BadOperation, NotFound) as error:
                receipts[operation.op_id] = {"op_id": operation.op_id, "error": say(error)}
        for new, (stored, duplicate) in zip(
            accepted, self.records.accept(accepted) if accepted else (), strict=True
        ):
            receipt: Receipt = {key: stored.get(key) for key in RECEIPT} | {"duplicate": duplicate}
            refused = {"op_id": new.op_id, "error": say(_unknown(new.subject))}
            receipts[new.op_id] = receipt if stored else refused
        if any(folder_of(self.records.kept(recording)) for recording in {new.subject for new in accepted}):
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
        now_ns, begun = self.records.now_ns(), frozen.get("begun", {})
        # The choice of the recipe is the lower limit, unless the computer was restarted since then.
        begun_ns = int(begun["host_ns"]) if begun.get("clock_id") == self.clock_id else 0
        stamp = touch_clock.inside(self._stamp(operation, now_ns), begun_ns=begun_ns, now_ns=now_ns)
        # The client's statements about time are logged unchanged, to be evaluated again if needed.
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
            clock=clock | sender.origin_of(operation),
            seen=operation.seen,
        )

    def recording(self, recording: str, *, kitchen: str | None) -> dict[str, Any]:
        """Return the frozen body of a recording, and its folder. Raises NotFound, also for another kitchen."""
        ops = self.records.ops(recording)  # another process may have destroyed it
        return {**self._frozen(recording, kitchen), "folder": folder_of(ops)}

    def _frozen(self, recording: str, kitchen: str | None) -> Frozen:
        body = self.records.frozen(recording)
        if body is None or kitchen not in (None, body["kitchen"]):
            raise _unknown(recording)
        return body

    def unfit_anchors(self) -> list[str]:
        """Return the recordings with anchors that the log does not fit."""
        with self.records.database.reading() as connection:
            return unfit(connection, self.folders.anchors(), self._key)

    def require_own(self, recording: str, sender: Sender) -> None:
        """Refuse a tablet that does not take part in a recording. Raises NotFound, BadOperation."""
        self._frozen(recording, sender.device["kitchen"])
        require_own(self._known(recording), sender)

    def _known(self, recording: str) -> list[Op]:
        """Return the operations so far, from the cache; once cooking has ended also those of the desk."""
        kept = self.records.kept(recording)
        is_over = any(op["kind"] in ("end", "finish") for op in kept)
        return self.records.ops(recording) if is_over or not kept else kept

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
        """File waiting operations into their recordings' events; return how many still wait.

        Operations that cannot be filed now (full disk, unavailable folder) stay in the log and are retried.
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
        body = next((other["body"] for other in ops if other["kind"] == "recording"), None)
        if body is None:
            return  # destroyed meanwhile
        earlier = {other["op_id"]: other["kind"] for other in ops}
        lines = event_lines(op, cast("Frozen", body), earlier)
        stamps = (op["host_ns"], op["uncertainty_ns"])
        folder = folder_of(ops)
        if folder is None:
            return
        self.folders.append(folder, (FolderEvent(kind, *stamps, op_id, text) for op_id, kind, text in lines))
        if op["kind"] == "consent":
            self._agree(folder, op)
        if (bound := _bound(op)) is not None:
            with self.records.database.reading() as connection:
                self.folders.anchor(folder, bound == "end", head_anchor(connection, self._key))
        if op["kind"] == "withdraw":
            self.folders.withdraw(folder, host_ns=op["host_ns"])
        if op["kind"] == "keep":
            self.folders.keep(folder)
            if agreed := [other for other in ops if other["kind"] == "consent" and other["n"] < op["n"]]:
                self._agree(folder, agreed[-1])
        if op["kind"] == "recording":
            recipe = {key: body[key] for key in ("name", "graph_hash", "order", "seed", "source")}
            script = {"strategy": body["strategy"], "display": body["display"], "certificate": body["script"]}
            who = {}
            if "began_utc_ns" in body:  # listed at the desk: the recorder did not know person and kitchen
                kitchen = self.records.row(tables.kitchen, body["kitchen"])
                person = self.records.pseudonym(op["actor"]) or None
                who = {"pseudonym": person, "place": kitchen and kitchen["name"]}
            self.folders.put(folder, {"recipe": recipe, "script": script} | who)

    def _agree(self, folder: str, op: Op) -> None:
        """Write the person's current consent into the manifest."""
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

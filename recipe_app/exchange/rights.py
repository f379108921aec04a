"""On whose word an operation comes, and what that word suffices for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from recipe_app.errors import BadOperation
from recipe_app.operations.kinds import Operation


@dataclass(frozen=True)
class Sender:
    """The tablet, who is signed in there, or who brings its dump (`imported`) and may that person correct."""

    device: dict[str, Any]
    actor: str = ""
    imported: bool = False
    corrects: bool = False

    def actor_of(self, operation: Operation) -> str:
        """Say who did it: the person who is signed in, and nobody where the tablet names another."""
        if self.imported or operation.actor in ("", self.actor):
            return self.actor
        return ""

    def said_of(self, operation: Operation) -> dict[str, Any]:
        """Return what is kept beside an operation of how it came: that it was imported, whom the tablet named."""
        said = {"imported": True} if self.imported else {}
        named = operation.actor and operation.actor != self.actor_of(operation)
        return {**said, "named_actor": operation.actor} if named else said


def require_right(operation: Operation, ops: Sequence[dict[str, Any]], sender: Sender) -> None:
    """Let an operation on the recording of these operations pass. Raises BadOperation."""
    require_own(ops, sender)
    require_consent_by_person(operation, ops, sender)
    require_kept_by_person(operation, ops, sender)
    require_correcting(ops, sender)


def require_own(ops: Sequence[dict[str, Any]], sender: Sender) -> None:
    """Refuse a tablet that neither began nor joined this recording, unless its person is signed in there."""
    chosen = _chosen(ops)
    known = {chosen["body"].get("device", sender.device["id"]), *(op["device"] for op in ops)}
    if sender.device["id"] not in known and (sender.imported or sender.actor != chosen["actor"]):
        raise BadOperation("this recording is of another tablet; sign in here as the person who cooks")


def require_consent_by_person(operation: Operation, ops: Sequence[dict[str, Any]], sender: Sender) -> None:
    """Refuse an answer to the form of consent by anybody but the signed-in person whose recording it is."""
    person = _chosen(ops)["actor"]
    if operation.kind == "consent" and (
        sender.imported or not sender.actor or sender.actor_of(operation) != person
    ):
        raise BadOperation("consent: only the person who cooks may answer; sign in and answer the form again")


def require_kept_by_person(operation: Operation, ops: Sequence[dict[str, Any]], sender: Sender) -> None:
    """Refuse to take a withdrawal back for anybody but the signed-in person whose recording it is."""
    is_person = sender.actor and sender.actor_of(operation) == _chosen(ops)["actor"]
    if operation.kind == "keep" and (sender.imported or not is_person):
        raise BadOperation("only the person who cooks may take a withdrawal back; sign in as that person")


def require_correcting(ops: Sequence[dict[str, Any]], sender: Sender) -> None:
    """Refuse what a dump adds to a recording that is finished, from somebody who may not correct at the desk."""
    if sender.imported and not sender.corrects and any(op["kind"] == "finish" for op in ops):
        raise BadOperation("this recording is finished; a researcher takes in what changes it")


def _chosen(ops: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return next(op for op in ops if op["kind"] == "recording")

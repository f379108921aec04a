"""The ledger's notes, one type a kind: what happened to a stream besides its packets, as written and as read.

On disk a note is one JSON object: `note` (its kind), `stream`, `host_ns`, and its facts in the order of the fields
below; a fact that is None is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, TypeVar

from kitchensync.shell.untrusted_json import parse_object

BY_DEVICE, LOST, STOPPED, FAILED = "ended_by_device", "lost", "stopped", "failed"
"""Reasons of an end. A lost stream was tried again until the recording was over."""

SUSPEND = "suspend"
"""The computer slept: a cause of a hold, and of old the kind of a note about one."""


@dataclass(frozen=True, kw_only=True)
class Note:
    """What all notes say; the ledger fills it in when one is written."""

    kind: ClassVar[str] = ""
    stream: str = ""
    host_ns: int = 0
    "When it was written; 0 where that is not told."

    def facts(self) -> dict[str, Any]:
        """Return what this kind says besides, in the order in which it is written."""
        common = {one.name for one in fields(Note)}
        told = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in common}
        return {name: value for name, value in told.items() if value is not None}

    def line(self) -> str:
        """Return the note as it is stored."""
        said = {"note": self.kind, "stream": self.stream, "host_ns": self.host_ns}
        return json.dumps(said | self.facts())


@dataclass(frozen=True, kw_only=True)
class ConnectedNote(Note):
    """A connection was opened; `next_seq` is the number of its first packet."""

    kind = "connected"
    connection: int
    next_seq: int


@dataclass(frozen=True, kw_only=True)
class ClosedNote(Note):
    """A connection was closed, for a cause that a gap may have."""

    kind = "closed"
    cause: str
    next_seq: int
    why: str = ""
    at_boundary: bool | None = None
    "Whether after a whole packet, where that can be told."


@dataclass(frozen=True, kw_only=True)
class EndNote(Note):
    """The recorder of a stream ended; a lost stream says for which cause, and since when nothing was to come."""

    kind = "end"
    received: int = 0
    reason: str = "unknown"
    cause: str | None = None
    closed_host_ns: int | None = None


@dataclass(frozen=True, kw_only=True)
class LossNote(Note):
    """Packets that are lost, by number, the last one included; see the two kinds of it."""

    first_seq: int
    last_seq: int
    why: str | None = None
    "The queue server's own words where it refused them."


@dataclass(frozen=True, kw_only=True)
class DeclaredLossNote(LossNote):
    """Packets that found no room in the queue and were given up."""

    kind = "declared_loss"


@dataclass(frozen=True, kw_only=True)
class QueueLossNote(LossNote):
    """Packets that the queue server had taken and lost, or refused until they were given up."""

    kind = "queue_loss"


@dataclass(frozen=True, kw_only=True)
class HeldNote(Note):
    """Nobody received for a while."""

    kind = "held"
    cause: str
    start_host_ns: int
    end_host_ns: int


@dataclass(frozen=True, kw_only=True)
class ConditionNote(Note):
    """The operator's view of the stream changed, for instance to `stalled`."""

    kind = "condition"
    condition: str
    received: int
    last_host_ns: int


@dataclass(frozen=True, kw_only=True)
class StampNote(Note):
    """The stamp of packet `seq` does not go forward; it is kept as it is."""

    kind = "stamp"
    flag: str
    seq: int
    ticks: int
    ticks_before: int


@dataclass(frozen=True, kw_only=True)
class NewWorldFrameNote(Note):
    """The headset's app was started anew: poses from here on are in another world frame."""

    kind = "new_world_frame"
    connection: int
    next_seq: int | None = None
    "Number of the first packet in it; earlier versions told the connection alone."
    app_start: int
    utc_offset_ticks: int | None = None


@dataclass(frozen=True, kw_only=True)
class CameraSettingsNote(Note):
    """Which settings the front camera was asked for, and where its packets tell others."""

    kind = "camera_settings"
    asked: dict[str, Any]
    differ: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class CalibrationMissingNote(Note):
    """The constants of a sensor could not be downloaded."""

    kind = "calibration_missing"
    why: str


@dataclass(frozen=True, kw_only=True)
class OrdersMissingNote(Note):
    """The headset did not take the orders that a grey camera wants before it is opened."""

    kind = "orders_missing"
    why: str


@dataclass(frozen=True, kw_only=True)
class UnknownNote(Note):
    """A note that this version cannot understand, as it was written: of a kind of a newer version, say."""

    said: dict[str, Any] = field(default_factory=dict)

    @property
    def named(self) -> str:
        """The kind that it gives itself."""
        return str(self.said.get("note"))

    def line(self) -> str:
        """Return the note as it was stored."""
        return json.dumps(self.said)


WRITTEN: tuple[type[Note], ...] = (
    ConnectedNote,
    ClosedNote,
    EndNote,
    DeclaredLossNote,
    QueueLossNote,
    HeldNote,
    ConditionNote,
    StampNote,
    NewWorldFrameNote,
    CameraSettingsNote,
    CalibrationMissingNote,
    OrdersMissingNote,
)
KINDS: dict[str, type[Note]] = {one.kind: one for one in WRITTEN}

Kind = TypeVar("Kind", bound=Note)


def read_note(payload: bytes | memoryview) -> Note:
    """Read one stored note; one of another kind, or without what its kind says, is an UnknownNote.

    A fact that a newer version adds to a kind is passed over. Raises ValueError for what is no JSON object.
    """
    said = parse_object(bytes(payload))
    host_ns = said.get("host_ns") or 0
    if not isinstance(host_ns, int):
        raise ValueError("the time of a note is no whole number")
    note = _understood(said) or UnknownNote(said=said)
    return written(note, str(said.get("stream", "")), host_ns)


def _understood(said: dict[str, Any]) -> Note | None:
    its_type = KINDS.get(str(said.get("note")))
    if its_type is None:
        return None
    names = {one.name for one in fields(its_type)}
    try:
        return its_type(**{name: value for name, value in said.items() if name in names})
    except TypeError:  # it lacks what a note of its kind says
        return None


def written(note: Kind, stream: str, host_ns: int) -> Kind:
    """Return a note with the stream that it is about and the time at which it is written."""
    return replace(note, stream=stream, host_ns=host_ns)


def of_kind(notes: Iterable[Note], kind: type[Kind]) -> list[Kind]:
    """Return the notes of one kind, in their order."""
    return [note for note in notes if isinstance(note, kind)]

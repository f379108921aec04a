"""The notes of the ledger, one type per kind: events of a stream besides its packets.

On disk a note is one JSON object: `note` (its kind), `stream`, `host_ns`, and its facts in the order of the fields
below; facts that are None are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, TypeVar

from kitchensync.shell.untrusted_json import parse_object

BY_DEVICE, LOST, STOPPED, FAILED = "ended_by_device", "lost", "stopped", "failed"
"""Reasons of an end. For a lost stream the connection was retried until the recording ended."""

SUSPEND = "suspend"
"""The computer slept: a cause of a hold; in earlier versions the kind of a note about one."""


@dataclass(frozen=True, kw_only=True)
class Note:
    """Common fields of all notes; the ledger sets them when it writes a note."""

    kind: ClassVar[str] = ""
    stream: str = ""
    host_ns: int = 0
    "When it was written; 0 if not known."

    def facts(self) -> dict[str, Any]:
        """Return the fields of this kind, in the order in which they are written."""
        common = {field_.name for field_ in fields(Note)}
        facts = {
            field_.name: getattr(self, field_.name) for field_ in fields(self) if field_.name not in common
        }
        return {name: value for name, value in facts.items() if value is not None}

    def line(self) -> str:
        """Return the stored form of the note."""
        content = {"note": self.kind, "stream": self.stream, "host_ns": self.host_ns}
        return json.dumps(content | self.facts())


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
    "Whether after a whole packet, if known."


@dataclass(frozen=True, kw_only=True)
class EndNote(Note):
    """The recorder of a stream ended; for a lost stream also the cause, and when it was closed."""

    kind = "end"
    received: int = 0
    reason: str = "unknown"
    cause: str | None = None
    closed_host_ns: int | None = None


@dataclass(frozen=True, kw_only=True)
class LossNote(Note):
    """Packets that are lost, by number, both ends included; see its two kinds."""

    first_seq: int
    last_seq: int
    why: str | None = None
    "Error message of the queue server, if it refused them."


@dataclass(frozen=True, kw_only=True)
class DeclaredLossNote(LossNote):
    """Packets dropped because the queue was full."""

    kind = "declared_loss"


@dataclass(frozen=True, kw_only=True)
class QueueLossNote(LossNote):
    """Packets that the queue server accepted and lost, or refused until they were dropped."""

    kind = "queue_loss"


@dataclass(frozen=True, kw_only=True)
class HeldNote(Note):
    """Receiving was interrupted for a while."""

    kind = "held"
    cause: str
    start_host_ns: int
    end_host_ns: int


@dataclass(frozen=True, kw_only=True)
class ConditionNote(Note):
    """The condition shown to the operator changed, for instance to `stalled`."""

    kind = "condition"
    condition: str
    received: int
    last_host_ns: int


@dataclass(frozen=True, kw_only=True)
class StampNote(Note):
    """The timestamp of packet `seq` does not increase; it is kept unchanged."""

    kind = "stamp"
    flag: str
    seq: int
    ticks: int
    ticks_before: int


@dataclass(frozen=True, kw_only=True)
class NewWorldFrameNote(Note):
    """The headset's app was restarted: later poses are in another world frame."""

    kind = "new_world_frame"
    connection: int
    next_seq: int | None = None
    "Number of the first packet in it; earlier versions wrote only the connection."
    app_start: int
    utc_offset_ticks: int | None = None


@dataclass(frozen=True, kw_only=True)
class CameraSettingsNote(Note):
    """Requested settings of the front camera, and those that differ in its packets."""

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
    """The headset did not accept the commands that a grey camera needs before it is opened."""

    kind = "orders_missing"
    why: str


@dataclass(frozen=True, kw_only=True)
class UnknownNote(Note):
    """A note that this version cannot parse, as stored, for instance of a newer version."""

    content: dict[str, Any] = field(default_factory=dict)

    @property
    def kind_name(self) -> str:
        """The kind in the stored note."""
        return str(self.content.get("note"))

    def line(self) -> str:
        """Return the note as it was stored."""
        return json.dumps(self.content)


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
KINDS: dict[str, type[Note]] = {note_type.kind: note_type for note_type in WRITTEN}

Kind = TypeVar("Kind", bound=Note)


def read_note(payload: bytes | memoryview) -> Note:
    """Read a stored note; a note of an unknown kind, or without a required field, is an UnknownNote.

    Unknown fields, from newer versions, are ignored. Raises ValueError if it is not a JSON object.
    """
    content = parse_object(bytes(payload))
    host_ns = content.get("host_ns") or 0
    if not isinstance(host_ns, int):
        raise ValueError("the time of a note is not a whole number")
    note: Note = UnknownNote(content=content)
    if note_type := KINDS.get(str(content.get("note"))):
        names = {field_.name for field_ in fields(note_type)}
        with suppress(TypeError):  # a required field is missing
            note = note_type(**{name: value for name, value in content.items() if name in names})
    return written(note, str(content.get("stream", "")), host_ns)


def written(note: Kind, stream: str, host_ns: int) -> Kind:
    """Return a note with its stream and the time at which it is written."""
    return replace(note, stream=stream, host_ns=host_ns)


def of_kind(notes: Iterable[Note], kind: type[Kind]) -> list[Kind]:
    """Return the notes of one kind, in their order."""
    return [note for note in notes if isinstance(note, kind)]

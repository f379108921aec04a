"""`events/<writer>.jsonl`: actions of people, one line per event, append-only.

Each line has its own hash and that of the line before, so that a changed or lost line is detected.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NotRequired, TypedDict, cast

from kitchensync.shell.files_on_disk import matching, read_plain
from kitchensync.shell.untrusted_json import BadJson, parse_object
from kitchensync.storage.disk.durable import LOCAL
from kitchensync.storage.disk.self_check import CHECK, MOST_LINES_BYTES, checked_json, each_line, is_sound
from kitchensync.storage.errors import BadEventLog

SCHEMA = "event/1"
FIRST = "0" * 64  # stands for the hash of the line before the first one


class LogEvent(TypedDict):
    """An action: one line of a log."""

    schema: str
    kind: str
    host_ns: int
    uncertainty_ns: int
    op_id: str | None
    body: dict[str, Any]
    prev: str
    "Hash of the line before."
    writer: NotRequired[str]
    "Name of its log if events of several logs are read together."


FORMS: dict[str, type] = {"kind": str, "host_ns": int, "uncertainty_ns": int, "body": dict}
"""Required keys of every event with their types."""
MOST_NS = 1 << 61
"""Maximum of a time and of its uncertainty, so that sums fit in 64 bits, also for a pause without an end."""


class EventLog:
    """The event file of one writer in one recording; several processes may append."""

    def __init__(self, recording: Path, writer: str) -> None:
        """Make the folder; `writer` is a plain word such as `tablet` or `operator`."""
        if not writer.isidentifier():
            raise ValueError(f"event writer {writer!r} is not a plain word")
        self.path = recording / "events" / f"{writer}.jsonl"
        self.path.parent.mkdir(exist_ok=True)

    def append(
        self, kind: str, *, host_ns: int, uncertainty_ns: int, body: dict[str, Any], op_id: str | None = None
    ) -> LogEvent:
        """Append one event and sync it to the disk; return the event as stored.

        `host_ns` is CLOCK_MONOTONIC of the capture computer. An `op_id` that is already there is not stored
        again: the stored event is returned, so that a client may repeat after a lost answer.
        """
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o640)
        with os.fdopen(descriptor, "r+b") as file:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX)
            content = read_plain(self.path, MOST_LINES_BYTES)
            # a synced line is lost in a power cut if the name of its new file or folder is lost
            if not content:
                LOCAL.sync_folder(self.path.parent)
                LOCAL.sync_folder(self.path.parent.parent)
            elif not content.endswith(b"\n"):  # an incomplete last line was not confirmed to anyone
                os.ftruncate(file.fileno(), content.rfind(b"\n") + 1)
            previous = FIRST
            for stored, digest in read_lines(self.path):
                if op_id is not None and stored.get("op_id") == op_id:
                    return stored
                previous = digest
            event: LogEvent = {
                "schema": SCHEMA,
                "kind": kind,
                "host_ns": host_ns,
                "uncertainty_ns": uncertainty_ns,
                "op_id": op_id,
                "body": body,
                "prev": previous,
            }
            file.write(checked_json(event))
            file.flush()
            os.fsync(file.fileno())
            return event


def read_lines(path: Path) -> Iterator[tuple[LogEvent, str]]:
    """Yield each event with the hash of its line. Raises BadEventLog at the first line that does not fit."""
    previous = FIRST
    # A line without its end is being written, or was torn by a crash before it was acknowledged.
    for number, line in enumerate(each_line(read_plain(path, MOST_LINES_BYTES)), start=1):
        try:
            event = parse_object(line)
        except BadJson as error:
            raise BadEventLog(path, number, str(error)) from error
        if is_sound(line) is False:
            raise BadEventLog(path, number, "its checksum does not fit")
        if event.get("prev") != previous:
            raise BadEventLog(path, number, "it does not follow the line before it")
        if odd := _odd_in(event):
            raise BadEventLog(path, number, f"it does not say what an event says: {odd}")
        previous = hashlib.sha256(line).hexdigest()
        event.pop(CHECK, None)
        yield cast(LogEvent, event), previous


def _odd_in(event: dict[str, Any]) -> str:
    """Return the first key with an invalid value; empty if the event is valid."""
    if odd := [name for name, form in FORMS.items() if type(event.get(name)) is not form]:
        return odd[0]
    ids = {"op_id": event.get("op_id"), "undoes": event["body"].get("undoes")}
    odd = [name for name, value in ids.items() if not isinstance(value, str | None)]
    odd += [name for name in ("host_ns", "uncertainty_ns") if abs(event[name]) >= MOST_NS]
    return odd[0] if odd else ""


def event_logs(recording: Path) -> list[Path]:
    """List the logs of a recording, one for each writer."""
    return matching(recording / "events", "*.jsonl")


def read_events(recording: Path) -> list[LogEvent]:
    """Return all events of a recording by time; each gets `writer`, the name of its file."""
    events: list[LogEvent] = []
    for path in event_logs(recording):
        events += [{**event, "writer": path.stem} for event, _ in read_lines(path)]
    return sorted(events, key=lambda event: int(event["host_ns"]))


def events_of(recording: Path, writer: str) -> list[LogEvent]:
    """Return the events of one writer in the order in which they were appended; empty if there are none."""
    path = recording / "events" / f"{writer}.jsonl"
    return [event for event, _ in read_lines(path)] if path.is_file() else []


def taken_back(events: Sequence[LogEvent]) -> set[str]:
    """Return the `op_id` of undone events, from events in order of time.

    They are read from the last to the first, as an undone undo has no effect. An undo of several events has several
    lines, `<id>`, `<id>.1`.
    """
    undone: set[str] = set()
    for event in reversed(events):
        undoes = event["body"].get("undoes") if event["kind"] == "undo" else None
        if undoes is not None and str(event.get("op_id")).partition(".")[0] not in undone:
            undone.add(undoes)
    return undone

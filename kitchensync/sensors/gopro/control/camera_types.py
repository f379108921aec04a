"""What a GoPro says over HTTP, as values: state, shutter, clock, media."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

_STORAGE = {-1: "unknown", 0: "OK", 1: "full", 2: "removed", 3: "format error", 4: "busy", 8: "swapped"}


class CameraState(NamedTuple):
    """One answer to `/gopro/camera/state`: ids are strings, values mostly integers."""

    status: dict[str, Any]
    settings: dict[str, Any]
    host_ns: int
    "CLOCK_MONOTONIC when the answer was here."

    def number(self, status_id: int) -> int | None:
        """A status as an integer, None when the camera does not tell it."""
        value = self.status.get(str(status_id))
        try:
            return None if value is None else int(value)
        except (TypeError, ValueError):
            return None

    @property
    def busy(self) -> bool:
        """Status 8: loading, changing, finalising a file."""
        return bool(self.number(8))

    @property
    def encoding(self) -> bool:
        """Status 10: recording."""
        return bool(self.number(10))

    @property
    def ready(self) -> bool:
        """Neither busy nor recording."""
        return not self.busy and not self.encoding

    @property
    def recorded_s(self) -> int | None:
        """Status 13: seconds recorded so far."""
        return self.number(13)

    @property
    def battery_percent(self) -> int | None:
        """Status 70."""
        return self.number(70)

    @property
    def video_seconds_left(self) -> int | None:
        """Status 35: what the card still holds."""
        return self.number(35)

    def complaints(self) -> list[str]:
        """Describe in words what stops or endangers a recording; empty when nothing does."""
        said = []
        storage = self.number(33)
        if storage not in (None, 0):
            said.append(f"card: {_STORAGE.get(storage or 0, storage)}")
        if self.number(6):
            said.append("overheating")
        if self.number(85):
            said.append("too cold")
        if self.number(111):
            said.append("card too slow")
        if self.battery_percent == 0:
            said.append("battery empty")
        if self.video_seconds_left == 0:
            said.append("no recording time left on the card")
        return said


class ShutterEvent(NamedTuple):
    """When the shutter was pressed, by the host's clock: the truth lies between before and observed."""

    before_host_ns: int
    after_host_ns: int
    "The camera had answered."
    observed_host_ns: int
    "The first state that showed it had happened."


class CameraInfo(NamedTuple):
    """Who the camera is."""

    model_name: str
    firmware: str
    serial: str
    raw: dict[str, Any]
    is_virtual: bool = False
    "Whether the camera says that it is simulated; a real one never does."


class CameraClock(NamedTuple):
    """The camera's clock, which has whole seconds only."""

    local: datetime
    "Local time, without a zone."
    zone_minutes: int | None
    "Offset from UTC; on some models it holds the hour of summer time already."
    summer_time: bool
    host_ns: int
    "CLOCK_MONOTONIC when the answer was here."


@dataclass(frozen=True)
class MediaFile:
    """One file on the card; each chapter is a file of its own."""

    folder: str
    name: str
    bytes: int
    created: int | None
    "Seconds of the camera's local clock; never good enough to align by."

    @property
    def recording_number(self) -> str | None:
        """Four digits that the chapters of one recording share (GX020001.MP4 -> 0001)."""
        stem = self.name.partition(".")[0]
        return stem[4:] if len(stem) == 8 and stem[4:].isdigit() else None

    @property
    def chapter(self) -> int | None:
        """Chapter, from 1 (GX020001.MP4 -> 2)."""
        stem = self.name.partition(".")[0]
        return int(stem[2:4]) if len(stem) == 8 and stem[2:4].isdigit() else None

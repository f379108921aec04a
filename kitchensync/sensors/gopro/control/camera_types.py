"""Values from a GoPro's HTTP answers: state, shutter, clock, media."""

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
    "CLOCK_MONOTONIC when the answer arrived."

    def number(self, status_id: int) -> int | None:
        """Return a status as an integer, None if the camera does not report it."""
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
        """Status 35: recording time left on the card."""
        return self.number(35)

    def complaints(self) -> list[str]:
        """Return texts for everything that prevents or endangers a recording."""
        complaints = []
        storage = self.number(33)
        if storage not in (None, 0):
            complaints.append(f"card: {_STORAGE.get(storage or 0, storage)}")
        if self.number(6):
            complaints.append("overheating")
        if self.number(85):
            complaints.append("too cold")
        if self.number(111):
            complaints.append("card too slow")
        if self.battery_percent == 0:
            complaints.append("battery empty")
        if self.video_seconds_left == 0:
            complaints.append("no recording time left on the card")
        return complaints


class ShutterEvent(NamedTuple):
    """Time of a shutter command by the host's clock: it took effect between before and observed."""

    before_host_ns: int
    after_host_ns: int
    "When the camera's answer arrived."
    observed_host_ns: int
    "When the first state arrived that showed the effect."


class CameraInfo(NamedTuple):
    """Identity of a camera."""

    model_name: str
    firmware: str
    serial: str
    raw: dict[str, Any]
    is_virtual: bool = False
    "True if the camera reports that it is simulated."


class CameraClock(NamedTuple):
    """The camera's clock, which has whole seconds only."""

    local: datetime
    "Local time, without a zone."
    zone_minutes: int | None
    "Offset from UTC; on some models it includes the hour of summer time."
    summer_time: bool
    host_ns: int
    "CLOCK_MONOTONIC when the answer arrived."


@dataclass(frozen=True)
class MediaFile:
    """One file on the card; each chapter is a file of its own."""

    folder: str
    name: str
    bytes: int
    created: int | None
    "Seconds of the camera's local clock, not precise enough for alignment."

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

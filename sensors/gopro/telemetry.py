"""Everything a camera measured, on media time: shared by one file and by the chapters of a recording read as one."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from sensors.errors import BadGpmf, UnreadableMedia
from sensors.gopro import gpmf, motion
from sensors.gopro.tracks import SampleTrack, sample_track


class Payload(NamedTuple):
    """One GPMF payload: about a second of telemetry."""

    start_s: float
    "Start of its interval on the media timeline."
    duration_s: float
    data: bytes


class Telemetry:
    """The streams of all payloads; a class that has them gives `path` and `payloads`."""

    path: Path

    @property
    def payloads(self) -> list[Payload]:
        """All GPMF payloads in order; empty when there is no such track."""
        raise NotImplementedError

    @cached_property
    def stream_parts(self) -> list[list[gpmf.StreamPart]]:
        """What each payload holds; `UnreadableMedia` names the payload that is no GPMF."""
        parts = []
        for number, payload in enumerate(self.payloads, 1):
            try:
                parts.append(gpmf.read_streams(payload.data))
            except BadGpmf as error:
                raise UnreadableMedia(self.path, f"telemetry payload {number} is {error}") from error
        return parts

    @property
    def stream_names(self) -> list[str]:
        """Four-letter names of the streams with samples, in order of appearance."""
        return list(dict.fromkeys(part.key for parts in self.stream_parts for part in parts if part.count))

    @property
    def _intervals(self) -> list[tuple[float, float]]:
        return [(payload.start_s, payload.duration_s) for payload in self.payloads]

    def samples(self, key: str) -> SampleTrack:
        """Read any stream by its four letters (MAGN, CORI, IORI, GRAV, SHUT, SROT, MSKP, GPS5, ...)."""
        try:
            return sample_track(self.stream_parts, self._intervals, key)
        except BadGpmf as error:
            raise UnreadableMedia(self.path, str(error)) from error

    def gyroscope(self) -> motion.ImuTrack:
        """Read the angular velocity: rad/s in the camera's X Y Z (left, out of the screen, up), on media time."""
        return self._imu("GYRO")

    def accelerometer(self) -> motion.ImuTrack:
        """Read the specific force: m/s^2 in the camera's X Y Z (left, out of the screen, up), on media time."""
        return self._imu("ACCL")

    def _imu(self, key: str) -> motion.ImuTrack:
        try:
            return motion.imu_track(self.stream_parts, self._intervals, key)
        except BadGpmf as error:
            raise UnreadableMedia(self.path, str(error)) from error

    @property
    def frames_before(self) -> int | None:
        """Pictures of this recording before this file, as the stamps count them; None when they do not tell."""
        for part in self.stream_parts[0] if self.stream_parts else ():
            total = part.integer("TSMP")
            if part.key in ("SHUT", "CORI") and total is not None:
                return max(total - part.count, 0)
        return None

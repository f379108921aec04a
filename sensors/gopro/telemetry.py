"""Everything a camera measured, on media time: shared by one file and by the chapters of a recording read as one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sensors.errors import BadGpmf, UnreadableMedia
from sensors.gopro import gpmf, motion
from sensors.gopro.tracks import SampleTrack, sample_track

EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
GPS_FIX_3D = 3


class Payload(NamedTuple):
    """One GPMF payload: about a second of telemetry."""

    start_s: float
    "Start of its interval on the media timeline."
    duration_s: float
    data: bytes


class GpsTrack(NamedTuple):
    """Where the camera was, by GPS9 (HERO11, HERO13) or GPS5; all arrays (n,)."""

    t_s: np.ndarray
    "float64 media seconds."
    latitude_deg: np.ndarray
    longitude_deg: np.ndarray
    altitude_m: np.ndarray
    speed_2d_m_per_s: np.ndarray
    speed_3d_m_per_s: np.ndarray
    utc: list[datetime | None]
    "UTC of each sample (GPS9), or of each payload's first one (GPSU)."
    fix: np.ndarray
    "int64: 0 none, 2 or 3 dimensions. Trust 2 and more."
    precision: np.ndarray
    "float64 dilution of precision. Trust below 5."


class Slip(NamedTuple):
    """From this picture on the encoder is `skipped` pictures off the sensor (MSKP, cumulative)."""

    frame: int
    skipped: int


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

    def magnetometer(self) -> motion.ImuTrack:
        """Read the magnetic field, microtesla, turned like the other sensors (Fusion and MAX only)."""
        return self._imu("MAGN")

    def _imu(self, key: str) -> motion.ImuTrack:
        try:
            return motion.imu_track(self.stream_parts, self._intervals, key)
        except BadGpmf as error:
            raise UnreadableMedia(self.path, str(error)) from error

    def gps(self) -> GpsTrack | None:
        """Read the places, None when the camera has no GPS or it was off."""
        names = self.stream_names
        if "GPS9" in names:
            return _gps9(self.samples("GPS9"))
        return self._gps5(self.samples("GPS5")) if "GPS5" in names else None

    def _gps5(self, track: SampleTrack) -> GpsTrack:
        utc: list[datetime | None] = []
        fix: list[int] = []
        precision: list[float] = []
        for parts in self.stream_parts:
            for part in parts:
                if part.key != "GPS5" or not part.count:
                    continue
                said = gpmf.text(part.meta["GPSU"]) if "GPSU" in part.meta else ""
                utc += [gps_utc(said), *[None] * (part.count - 1)]
                fix += [part.integer("GPSF") or 0] * part.count
                precision += [(part.integer("GPSP") or 9999) / 100] * part.count
        place = track.values[:, :5].T
        return GpsTrack(
            track.t_s,
            place[0],
            place[1],
            place[2],
            place[3],
            place[4],
            utc,
            np.array(fix),
            np.array(precision),
        )

    @property
    def frame_slips(self) -> list[Slip]:
        """Pictures at which the encoder skipped or repeated; empty when none did, or the camera does not tell."""
        if "MSKP" not in self.stream_names:
            return []
        skipped = self.samples("MSKP").values[:, 0]
        at = np.flatnonzero(np.diff(skipped, prepend=0.0))
        return [Slip(int(frame), int(skipped[frame])) for frame in at]

    @property
    def frames_before(self) -> int | None:
        """Pictures of this recording before this file, as the stamps count them; None when they do not tell."""
        for part in self.stream_parts[0] if self.stream_parts else ():
            total = part.integer("TSMP")
            if part.key in ("SHUT", "CORI") and total is not None:
                return max(total - part.count, 0)
        return None

    @property
    def sensor_read_out_ms(self) -> float | None:
        """Time from the first to the last row of a picture (SROT), by the telemetry; None when not told there."""
        if "SROT" not in self.stream_names:
            return None
        return float(np.median(self.samples("SROT").values[:, 0]))


def _gps9(track: SampleTrack) -> GpsTrack:
    values = track.values
    utc: list[datetime | None] = [
        EPOCH + timedelta(days=float(days), seconds=float(seconds)) if abs(days) < 100_000 else None
        for days, seconds in values[:, 5:7]
    ]
    place = values[:, :5].T
    return GpsTrack(
        track.t_s,
        place[0],
        place[1],
        place[2],
        place[3],
        place[4],
        utc,
        values[:, 8].astype(np.int64),
        values[:, 7],
    )


def gps_utc(said: str) -> datetime | None:
    """Read GPSU, `yymmddhhmmss.sss`; None when it is not that."""
    try:
        return datetime.strptime(said, "%y%m%d%H%M%S.%f").replace(tzinfo=UTC)
    except ValueError:
        return None

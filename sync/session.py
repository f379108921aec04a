"""What one run of `sync` knows of a recording: its cameras, and the headset's clocks and motion."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from storage.recording import Recording, StoredStream
from sync.cameras import CameraFile, CameraTake, camera_takes
from sync.clock_map import ClockMap
from sync.errors import BadArrays
from sync.gyro import HeadsetGyro
from sync.head_pose import head_pose_gyro
from sync.headset import InertialClock, gyroscope, head_poses, inertial_clock, probes_of
from sync.host_clock import HostClock, constant_clock

INERTIAL = ("accelerometer", "gyroscope", "magnetometer")
FILETIME_OF_UNIX = 116_444_736_000_000_000
ANCHOR_BOUND_NS = 5_000_000_000


@dataclass(slots=True)
class Session:
    """What one run knows of a recording."""

    recording: Recording
    headset: str | None
    takes: list[CameraTake]
    inertial: dict[str, InertialClock] = field(default_factory=dict)
    host: HostClock | None = None
    gyro: HeadsetGyro | None = None
    maps: dict[str, ClockMap] = field(default_factory=dict)
    picture_late_s: dict[str, float] = field(default_factory=dict)
    "How much later than their stamps the pictures of a file were taken, where that was measured."

    @property
    def cameras(self) -> list[CameraFile]:
        """All camera files, take by take."""
        return [file for take in self.takes for file in take.files]

    @property
    def folder(self) -> Path:
        """Where everything that can be recomputed lies."""
        return self.recording.path / "sync"

    @property
    def epoch(self) -> int | None:
        """Ticks that seconds of the headset count from: its gyroscope's first, or else its first packet's."""
        if self.gyro is not None:
            return self.gyro.epoch_ticks
        names = [name for name in self.recording.streams if name.startswith(f"{self.headset}/")]
        indices = [self.recording[name].index for name in names]
        return min((int(index["device_ticks"][0]) for index in indices if len(index)), default=None)


def open_session(recording: Recording) -> Session:
    devices = recording.manifest.get("devices") or {}
    names = [name for name, device in devices.items() if device.get("kind") == "hololens"]
    headset = names[0] if names else None
    session = Session(recording, headset, camera_takes(recording))
    if headset is None:
        return session
    for short in INERTIAL:
        name = f"{headset}/{short}"
        clock = inertial_clock(recording[name]) if name in recording.streams else None
        if clock is not None:
            session.inertial[short] = clock
    session.host = probes_of(recording, headset) or _host_clock_of_utc(recording, headset)
    if session.cameras and "gyroscope" in session.inertial:
        session.gyro = gyroscope(recording[f"{headset}/gyroscope"], session.inertial["gyroscope"])
    elif session.cameras and f"{headset}/spatial_input" in recording.streams:
        session.gyro = _gyro_of_poses(recording[f"{headset}/spatial_input"])
    return session


def _gyro_of_poses(stream: StoredStream) -> HeadsetGyro | None:
    """The last resort: rotation rates of the head pose."""
    track = head_poses(stream)
    try:
        return head_pose_gyro(track.ticks, track.rotation_wxyz)
    except BadArrays:
        return None


def _host_clock_of_utc(recording: Recording, headset: str) -> HostClock | None:
    """Without probes: both clocks know UTC, good to seconds."""
    offset = recording.manifest["devices"][headset].get("utc_offset_ticks")
    started = recording.manifest.get("started") or {}
    if offset is None or not {"host_ns", "utc_ns"} <= set(started):
        return None
    ticks = int(started["utc_ns"]) // 100 + FILETIME_OF_UNIX - int(offset)
    at = int(started["host_ns"])
    return constant_clock(ticks, at, ANCHOR_BOUND_NS)

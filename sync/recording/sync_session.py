"""What one run of `sync` knows of a recording: its cameras, and the clocks and motion of its headsets."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import av
import numpy as np
import numpy.typing as npt

from kitchensync.sensors.hololens.catalogue import GYROSCOPE, HEAD_POSE, STREAMS
from kitchensync.sensors.hololens.headset_stream import SAMPLES
from kitchensync.storage.copies.read_through import promised_hashes
from kitchensync.storage.errors import pass_on_trouble
from kitchensync.storage.reading.inertial import InertialClock, inertial_clock
from kitchensync.storage.recording import Recording, StoredStream
from kitchensync.storage.timeline.bridge import Bridge
from kitchensync.storage.timeline.clock_map import ClockMap
from kitchensync.storage.timeline.device_clock import HostClock, constant_clock
from kitchensync.sync.align.headset_gyro import HeadsetGyro, head_pose_gyro
from kitchensync.sync.errors import BadArrays
from kitchensync.sync.recording.clips_to_align import CameraClip, CameraFile, camera_clips
from kitchensync.sync.recording.headset import gyroscope, head_poses

INERTIAL = sorted(name for name, stream in STREAMS.items() if stream.kind == SAMPLES)
FILETIME_OF_UNIX = 116_444_736_000_000_000
ANCHOR_BOUND_NS = 5_000_000_000


@dataclass(slots=True)
class Headset:
    """One headset's clocks and motion."""

    name: str
    recording: Recording
    inertial: dict[str, InertialClock] = field(default_factory=dict)
    host: HostClock | None = None
    gyro: HeadsetGyro | None = None

    @property
    def about(self) -> dict[str, Any]:
        """What the manifest says of it."""
        return dict(self.recording.manifest["devices"][self.name])

    def has(self, short: str) -> bool:
        """Return whether a stream was armed and sent anything."""
        name = f"{self.name}/{short}"
        return name in self.recording.streams and len(self.recording[name]) > 0

    @property
    def streams(self) -> list[tuple[str, StoredStream]]:
        """Its streams that sent anything, by short name."""
        return [(n, self.recording[f"{self.name}/{n}"]) for n in self._short_names if self.has(n)]

    @property
    def _short_names(self) -> list[str]:
        names = (name.partition("/") for name in self.recording.streams)
        return [short for device, _, short in names if device == self.name]

    @property
    def epoch(self) -> int | None:
        """Ticks that its seconds count from: its gyroscope's first, or else its first packet's."""
        if self.gyro is not None:
            return self.gyro.epoch_ticks
        return min((int(stream.index["device_ticks"][0]) for _, stream in self.streams), default=None)


@dataclass(slots=True)
class Session:
    """What one run knows of a recording.

    `main` is the headset on whose ticks everything is put; `bridges` lead there from the others, by name. The map of
    a camera file leads to the ticks of the headset that it rides with.
    """

    recording: Recording
    headsets: list[Headset]
    clips: list[CameraClip]
    main: Headset | None = None
    bridges: dict[str, Bridge] = field(default_factory=dict)
    maps: dict[str, ClockMap] = field(default_factory=dict)
    rides_with: dict[str, Headset] = field(default_factory=dict)
    picture_late_s: dict[str, float] = field(default_factory=dict)
    "How much later than their stamps the pictures of a file were taken, where that was measured."
    folder: Path = field(default_factory=Path)
    "Where this run writes."

    @property
    def cameras(self) -> list[CameraFile]:
        """All camera files, clip by clip."""
        return [file for clip in self.clips for file in clip.files]

    def column(self, headset: Headset, short: str) -> str:
        """Name of a headset's stream in the tables: the device stands first where there are several."""
        return short if len(self.headsets) == 1 else f"{headset.name}/{short}"


def open_session(recording: Recording, master: str | None = None) -> Session:
    """Read clocks and motion of all devices; `master` names a stream whose headset gives the ticks, if one does."""
    devices = recording.manifest.get("devices") or {}
    clips = [*camera_clips(recording), *film_clips(recording)]
    names = [name for name, device in devices.items() if device.get("kind") == "hololens"]
    headsets = [_open_headset(recording, name, needs_motion=bool(clips)) for name in names]
    wanted = [headset for headset in headsets if headset.name == (master or "").partition("/")[0]]
    return Session(recording, headsets, clips, main=next(iter([*wanted, *headsets]), None))


def _open_headset(recording: Recording, name: str, *, needs_motion: bool) -> Headset:
    headset = Headset(name, recording)
    for short in INERTIAL:
        clock = inertial_clock(recording[f"{name}/{short}"]) if headset.has(short) else None
        if clock is not None:
            headset.inertial[short] = clock
    headset.host = recording.device_clock(name) or _host_clock_of_utc(headset)
    if needs_motion and GYROSCOPE in headset.inertial:
        headset.gyro = gyroscope(recording[f"{name}/{GYROSCOPE}"], headset.inertial[GYROSCOPE])
    elif needs_motion and headset.has(HEAD_POSE):
        headset.gyro = _gyro_of_poses(recording[f"{name}/{HEAD_POSE}"])
    return headset


def _gyro_of_poses(stream: StoredStream) -> HeadsetGyro | None:
    """The last resort: rotation rates of the head pose."""
    track = head_poses(stream)
    try:
        return head_pose_gyro(track.ticks, track.rotation_wxyz)
    except BadArrays:
        return None


def _host_clock_of_utc(headset: Headset) -> HostClock | None:
    """Without probes: both clocks know UTC, good to seconds."""
    offset = headset.about.get("utc_offset_ticks")
    started = headset.recording.manifest.get("started") or {}
    if offset is None or not {"host_ns", "utc_ns"} <= set(started):
        return None
    ticks = int(started["utc_ns"]) // 100 + FILETIME_OF_UNIX - int(offset)
    at = int(started["host_ns"])
    return constant_clock(ticks, at, ANCHOR_BOUND_NS)


KIND = "video"


def film_clips(recording: Recording) -> list[CameraClip]:
    """Read the times of the pictures of every adopted film, each a clip of its own; no picture is decoded."""
    devices = [name for name, about in recording.manifest["devices"].items() if about.get("kind") == KIND]
    promised = promised_hashes(recording.readable, recording.manifest) if devices else {}
    return [
        CameraClip(name.partition("/")[0], (_film(recording, name),))
        for name in promised
        if name.partition("/")[0] in devices
    ]


def _film(recording: Recording, name: str) -> CameraFile:
    path, problem = recording.readable / name, ""
    times_s: npt.NDArray[np.floating] = np.empty(0)
    try:
        times_s = _frame_times_s(path)
    except (av.FFmpegError, OSError) as error:
        pass_on_trouble(error)
        problem = f"{path.name}: {(error.strerror or str(error)).lower()}"
    if not len(times_s):
        problem = problem or f"{path.name}: no pictures"
    return CameraFile(name.partition("/")[0], path, name, times_s, 0.0, 0.0, False, problem)


def _frame_times_s(path: Path) -> npt.NDArray[np.floating]:
    """Media time of each picture in order of time, the first is 0."""
    with av.open(str(path), metadata_errors="replace") as container:
        stream = next(iter(container.streams.video), None)
        if stream is None or stream.time_base is None:
            return np.empty(0)
        packets = container.demux(stream)
        stamps = [one.pts for one in packets if one.pts is not None and one.size and not one.is_discard]
        times = np.array(sorted(stamps), dtype=np.int64)
        return (times - times[:1]) * float(stream.time_base)

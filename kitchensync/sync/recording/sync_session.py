"""The state of one run of `sync`: cameras of a recording, and clocks and motion of its headsets."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from kitchensync.sensors.hololens.catalogue import GYROSCOPE, HEAD_POSE, STREAMS
from kitchensync.sensors.hololens.headset_stream import SAMPLES
from kitchensync.storage.reading.inertial import InertialClock, inertial_clock
from kitchensync.storage.recording import Recording, StoredStream
from kitchensync.storage.timeline.bridge import Bridge
from kitchensync.storage.timeline.clock_map import ClockMap
from kitchensync.storage.timeline.device_clock import HostClock, constant_clock
from kitchensync.storage.timeline.utc_times import moment_utc_ns
from kitchensync.sync.align.headset_gyro import HeadsetGyro, camera_as_reference, head_pose_gyro
from kitchensync.sync.errors import BadArrays
from kitchensync.sync.recording.clips_to_align import CameraClip, CameraFile, adopted_clips, camera_clips
from kitchensync.sync.recording.headset import gyroscope, head_poses

INERTIAL = sorted(name for name, stream in STREAMS.items() if stream.kind == SAMPLES)
FILETIME_OF_UNIX = 116_444_736_000_000_000  # 100 ns from 1601 to 1970
ANCHOR_BOUND_NS = 5_000_000_000  # UTC of a headset that was off-line for days is seconds off


@dataclass(slots=True)
class Headset:
    """One headset's clocks and motion."""

    name: str
    recording: Recording
    inertial: dict[str, InertialClock] = field(default_factory=dict)
    host: HostClock | None = None
    gyro: HeadsetGyro | None = None

    @property
    def motion(self) -> str:
        """Name of its motion in alignments."""
        return f"{self.name}/{GYROSCOPE}"

    def has(self, short: str) -> bool:
        """Return whether a stream has packets."""
        name = f"{self.name}/{short}"
        return name in self.recording.streams and len(self.recording[name]) > 0

    @property
    def streams(self) -> list[tuple[str, StoredStream]]:
        """Its streams with packets, by short name."""
        names = (name.partition("/") for name in self.recording.streams)
        own = [short for device, _, short in names if device == self.name and self.has(short)]
        return [(short, self.recording[f"{self.name}/{short}"]) for short in own]

    @property
    def epoch(self) -> int | None:
        """Ticks of its second 0: the first of its gyroscope, else of its first packet."""
        if self.gyro is not None:
            return self.gyro.epoch_ticks
        return min((int(stream.index["device_ticks"][0]) for _, stream in self.streams), default=None)


@dataclass(frozen=True, slots=True)
class Reference:
    """A clip with whose media time other cameras are aligned if there is no headset."""

    clip: CameraClip
    gyro: HeadsetGyro
    host: HostClock | None = None
    epoch: int = 0

    @property
    def name(self) -> str:
        """The source of its first readable file, where its time is 0."""
        return self.clip.readable[0].source

    @property
    def motion(self) -> str:
        """Name of its motion in alignments."""
        return self.name


Master = Headset | Reference


@dataclass(slots=True)
class Session:
    """The state of one run.

    `main` is the headset whose ticks are the common clock; `bridges` convert those of the others, by name. The map
    of a camera file converts to the ticks of the headset on which it is mounted, without one to media time of a
    reference.
    """

    recording: Recording
    headsets: list[Headset]
    clips: list[CameraClip]
    main: Headset | None = None
    references: list[Reference] = field(default_factory=list)
    "The clips of the camera with which others are compared, without a headset."
    bridges: dict[str, Bridge] = field(default_factory=dict)
    maps: dict[str, ClockMap] = field(default_factory=dict)
    rides_with: dict[str, Master] = field(default_factory=dict)
    picture_late_s: dict[str, float] = field(default_factory=dict)
    "Measured latency of the pictures of a file to their stamps."
    folder: Path = field(default_factory=Path)  # output folder of this run

    @property
    def cameras(self) -> list[CameraFile]:
        """All camera files, clip by clip."""
        return [file for clip in self.clips for file in clip.files]

    @property
    def masters(self) -> list[Headset] | list[Reference]:
        """The headsets or clips with which cameras are compared."""
        return self.headsets or self.references

    @property
    def own_clip(self) -> CameraClip | None:
        """Without a headset the clip whose media time is that of the index: the one with most others aligned."""
        if self.headsets:
            return None
        placed = list(self.rides_with.values())
        if self.references:
            return max(self.references, key=placed.count).clip  # the first of equal ones
        return next((clip for clip in self.clips if clip.readable), None)

    def place(self, file: CameraFile, clock_map: ClockMap, master: Master) -> None:
        """Store the map of a file and its headset or reference."""
        self.maps[file.source], self.rides_with[file.source] = clock_map, master

    def is_on_tables(self, source: str) -> bool:
        """Return whether a file is on the clock of the tables, which later clips of the reference are not."""
        master = self.rides_with.get(source)
        return master is not None and (isinstance(master, Headset) or master.clip is self.own_clip)

    def name_of(self, clip: CameraClip) -> str:
        """Name of a clip's pictures in the tables: the device's, except for later cameras of adopted films."""
        first = next(other for other in self.clips if other.device == clip.device)
        return clip.device if clip.camera in (clip.device, first.camera) else clip.files[0].source

    def column(self, headset: Headset, short: str) -> str:
        """Name of a headset's stream in the tables, with the device if there are several."""
        return short if len(self.headsets) == 1 else f"{headset.name}/{short}"


def open_session(recording: Recording, master: str | None = None) -> Session:
    """Read clocks and motion of all devices; the headset of the stream `master`, if any, is the main one."""
    devices = recording.manifest.get("devices") or {}
    clips = [*camera_clips(recording), *adopted_clips(recording)]
    names = [name for name, device in devices.items() if device.get("kind") == "hololens"]
    headsets = [_open_headset(recording, name, needs_motion=bool(clips)) for name in names]
    requested = [headset for headset in headsets if headset.name == (master or "").partition("/")[0]]
    session = Session(recording, headsets, clips, main=next(iter([*requested, *headsets]), None))
    moving = sorted((clip for clip in clips if clip.gyro is not None), key=lambda clip: clip.device)
    if not headsets:  # references are the clips of the first camera with motion
        session.references = [
            Reference(clip, camera_as_reference(clip.gyro))
            for clip in moving
            if clip.gyro is not None and clip.camera == moving[0].camera
        ]
    return session


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
        track = head_poses(recording[f"{name}/{HEAD_POSE}"])
        with suppress(BadArrays):  # the last resort
            headset.gyro = head_pose_gyro(track.ticks, track.rotation_wxyz)
    return headset


def _host_clock_of_utc(headset: Headset) -> HostClock | None:
    """Return a clock by the UTC of both devices, for recordings without probes; it is precise to seconds."""
    manifest = headset.recording.manifest
    offset = manifest["devices"][headset.name].get("utc_offset_ticks")
    began_ns, at = moment_utc_ns(manifest), (manifest.get("started") or {}).get("host_ns")
    if offset is None or began_ns is None or at is None:
        return None
    ticks = began_ns // 100 + FILETIME_OF_UNIX - int(offset)
    return constant_clock(ticks, at, ANCHOR_BOUND_NS)

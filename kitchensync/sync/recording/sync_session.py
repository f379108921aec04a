"""What one run of `sync` knows of a recording: its cameras, and the clocks and motion of its headsets."""

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
    def motion(self) -> str:
        """Name of what moves with it, as alignments have it."""
        return f"{self.name}/{GYROSCOPE}"

    def has(self, short: str) -> bool:
        """Return whether a stream was armed and sent anything."""
        name = f"{self.name}/{short}"
        return name in self.recording.streams and len(self.recording[name]) > 0

    @property
    def streams(self) -> list[tuple[str, StoredStream]]:
        """Its streams that sent anything, by short name."""
        names = (name.partition("/") for name in self.recording.streams)
        own = [short for device, _, short in names if device == self.name and self.has(short)]
        return [(short, self.recording[f"{self.name}/{short}"]) for short in own]

    @property
    def epoch(self) -> int | None:
        """Ticks that its seconds count from: its gyroscope's first, or else its first packet's."""
        if self.gyro is not None:
            return self.gyro.epoch_ticks
        return min((int(stream.index["device_ticks"][0]) for _, stream in self.streams), default=None)


@dataclass(frozen=True, slots=True)
class Reference:
    """A clip onto whose media time those of other cameras are put, where no headset was recorded."""

    clip: CameraClip
    gyro: HeadsetGyro
    host: HostClock | None = None
    epoch: int = 0

    @property
    def name(self) -> str:
        """The source of its first file that can be read: there its time is 0."""
        return self.clip.readable[0].source

    @property
    def motion(self) -> str:
        """Name of what moves with it, as alignments have it."""
        return self.name


Master = Headset | Reference


@dataclass(slots=True)
class Session:
    """What one run knows of a recording.

    `main` is the headset on whose ticks everything is put; `bridges` lead there from the others, by name. The map of
    a camera file leads to the ticks of the headset that it rides with, without one to media time of a reference.
    """

    recording: Recording
    headsets: list[Headset]
    clips: list[CameraClip]
    main: Headset | None = None
    references: list[Reference] = field(default_factory=list)
    "The clips of the camera that others are compared with, where there is no headset."
    bridges: dict[str, Bridge] = field(default_factory=dict)
    maps: dict[str, ClockMap] = field(default_factory=dict)
    rides_with: dict[str, Master] = field(default_factory=dict)
    picture_late_s: dict[str, float] = field(default_factory=dict)
    "How much later than their stamps the pictures of a file were taken, where that was measured."
    folder: Path = field(default_factory=Path)  # where this run writes

    @property
    def cameras(self) -> list[CameraFile]:
        """All camera files, clip by clip."""
        return [file for clip in self.clips for file in clip.files]

    @property
    def masters(self) -> list[Headset] | list[Reference]:
        """What cameras are compared with."""
        return self.headsets or self.references

    @property
    def own_clip(self) -> CameraClip | None:
        """The clip on whose media time the index counts, where there is no headset: with most others on it."""
        if self.headsets:
            return None
        placed = list(self.rides_with.values())
        if self.references:
            return max(self.references, key=placed.count).clip  # of equals the first
        return next((clip for clip in self.clips if clip.readable), None)

    def place(self, file: CameraFile, clock_map: ClockMap, master: Master) -> None:
        """Keep the map of a file and the device that it rides with."""
        self.maps[file.source], self.rides_with[file.source] = clock_map, master

    def is_on_tables(self, source: str) -> bool:
        """Return whether a file lies on the clock of the tables: a later clip of the reference has another one."""
        master = self.rides_with.get(source)
        return master is not None and (isinstance(master, Headset) or master.clip is self.own_clip)

    def name_of(self, clip: CameraClip) -> str:
        """Name of a clip's pictures in the tables: the device's, but for the later cameras of adopted films."""
        first = next(one for one in self.clips if one.device == clip.device)
        return clip.device if clip.camera in (clip.device, first.camera) else clip.files[0].source

    def column(self, headset: Headset, short: str) -> str:
        """Name of a headset's stream in the tables: the device stands first where there are several."""
        return short if len(self.headsets) == 1 else f"{headset.name}/{short}"


def open_session(recording: Recording, master: str | None = None) -> Session:
    """Read clocks and motion of all devices; `master` names a stream whose headset gives the ticks, if one does."""
    devices = recording.manifest.get("devices") or {}
    clips = [*camera_clips(recording), *adopted_clips(recording)]
    names = [name for name, device in devices.items() if device.get("kind") == "hololens"]
    headsets = [_open_headset(recording, name, needs_motion=bool(clips)) for name in names]
    wanted = [headset for headset in headsets if headset.name == (master or "").partition("/")[0]]
    session = Session(recording, headsets, clips, main=next(iter([*wanted, *headsets]), None))
    moving = sorted((clip for clip in clips if clip.gyro is not None), key=lambda clip: clip.device)
    if not headsets:  # each clip of the first camera that recorded motion serves, the first is the index's
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
    """Without probes: both clocks know UTC, good to seconds."""
    manifest = headset.recording.manifest
    offset = manifest["devices"][headset.name].get("utc_offset_ticks")
    began_ns, at = moment_utc_ns(manifest), (manifest.get("started") or {}).get("host_ns")
    if offset is None or began_ns is None or at is None:
        return None
    ticks = began_ns // 100 + FILETIME_OF_UNIX - int(offset)
    return constant_clock(ticks, at, ANCHOR_BOUND_NS)

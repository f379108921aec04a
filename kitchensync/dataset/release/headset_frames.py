"""The frames of a recording's synchronized data: those of the master stream of its index, counted from 0.

Each frame, and every sample of the headset matched to it, has a time on the capture clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kitchensync.reader.opened_recording import OpenedRecording
from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.hololens.profile import Profile
from kitchensync.sensors.hololens.streams import spatial_input
from kitchensync.sensors.hololens.wire import is_tracked
from kitchensync.shell.array_types import Int64
from kitchensync.storage.exports.arrays_file import ArraysFile, Blocks
from kitchensync.storage.options.outputs import written
from kitchensync.storage.privacy import Pauses, in_pauses
from kitchensync.storage.reading.inertial import InertialClock, blocks_of_samples, inertial_clock
from kitchensync.storage.reading.instants import Instants
from kitchensync.storage.reading.records import read_records
from kitchensync.storage.recording import StoredStream
from kitchensync.storage.timeline.device_clock import HostClock
from kitchensync.storage.timeline.film_times import UNKNOWN, FilmTimes

if TYPE_CHECKING:
    from kitchensync.sensors.gopro.files.clip import Clip


@dataclass(frozen=True)
class FrameSamples:
    """Samples of a stream matched to frames: `frame`, `row` and capture time, each (n,)."""

    frame: Int64
    row: Int64
    taken_ns: Int64


@dataclass(frozen=True)
class Film:
    """A camera's name, its clip, and the capture times of its frames."""

    camera: str
    clip: Clip
    frames: FilmTimes


@dataclass(frozen=True)
class HeadsetFrames:
    """The frames of one recording; `host` converts its headset's ticks to the capture clock."""

    recording: OpenedRecording
    headset: str
    host: HostClock
    pauses: Pauses = ()
    "Privacy pauses; frames that may be in a pause have no matched sample."
    film: Film | None = None
    "The video of the camera, if there is one."

    def __len__(self) -> int:
        """Count the frames."""
        return len(self.instants)

    @property
    def instants(self) -> Instants:
        """The frame index of `sync`."""
        return self.recording.stored.instants

    @cached_property
    def capture_ns(self) -> Int64:
        """Capture time of each frame, (n,)."""
        stream = self.stream(self.instants.master)
        if stream is None:
            return self.host.to_host_ns(self.instants.ticks)
        return self.taken_ns(stream, self.instants.rows_of(self.instants.master))

    @cached_property
    def bound_ns(self) -> Int64:
        """Error bound of `capture_ns`, (n,)."""
        return self.film_numbers[2] if self.is_of_film else np.full(len(self), self.host.bound_ns)

    @property
    def is_of_film(self) -> bool:
        """Whether the frames are those of the camera's video."""
        return self.film is not None and self.instants.master == self.film.camera

    def untaken(self) -> int:
        """Count the frames that were not captured between the first and the last frame of the camera's video."""
        video_ns = self.film.frames.capture_ns if self.film is not None else np.empty(0, np.int64)
        video_ns = video_ns[video_ns != UNKNOWN]
        if not len(video_ns) or len(self) < 2:
            return 0
        inside_ns = self.capture_ns[(self.capture_ns > video_ns[0]) & (self.capture_ns < video_ns[-1])]
        steps = np.diff(np.concatenate([video_ns[:1], inside_ns, video_ns[-1:]]))
        return int((steps / np.median(np.diff(self.capture_ns)) - 0.5).clip(0).astype(np.int64).sum())

    @cached_property
    def hidden(self) -> npt.NDArray[np.bool_]:
        """Which frames may be in a pause, (n,)."""
        return in_pauses(self.capture_ns, self.bound_ns, self.pauses)

    def stream(self, short: str) -> StoredStream | None:
        """Return a stream of the headset; None if it was not recorded or has no packets."""
        name = f"{self.headset}/{short}"
        stored = self.recording.stored
        return stored[name] if name in stored.streams and len(stored[name]) else None

    def taken_ns(self, stream: StoredStream, rows: Int64) -> Int64:
        """Return the capture times of the packets in `rows`."""
        index = stream.index[rows]
        near = index["host_ns"].astype(np.int64)
        return self.host.to_host_ns(index["device_ticks"].astype(np.int64), near_host_ns=near)

    def beside(self, short: str, stream: StoredStream) -> FrameSamples:
        """Return the sample of a stream matched to each frame; frames without one are left out. Raises KeyError."""
        rows = self.instants.rows_of(self._column(short))
        frame = np.flatnonzero((rows >= 0) & ~self.hidden)
        taken_ns = self.taken_ns(stream, rows[frame])
        shown = ~in_pauses(taken_ns, self.host.bound_ns, self.pauses)
        return FrameSamples(frame[shown], rows[frame][shown], taken_ns[shown])

    def slices(self, short: str) -> tuple[Int64, Int64]:
        """Return the half-open range of samples from each frame to the next. Raises KeyError."""
        return self.instants.slices_of(self._column(short))

    def worlds(self, stream: StoredStream, rows: Int64) -> Int64:
        """Return the world frame of the packets in `rows`, (n,): poses of different frames cannot be compared."""
        return self.recording.worlds_of(stream.name)[rows].astype(np.int64)

    def _column(self, short: str) -> str:
        full = f"{self.headset}/{short}"
        return full if full in (*self.instants.names, *self.instants.runs) else short

    @cached_property
    def film_numbers(self) -> tuple[Int64, Int64, Int64]:
        """For each frame: the matched video frame or -1, its capture time, and its bound, each (n,)."""
        instants, film = self.instants, self.film
        if film is None or film.camera not in instants.names:
            none = np.full(len(self), -1)
            return none, np.full(len(self), UNKNOWN), np.zeros(len(self), np.int64)
        chapters = zip(film.clip.first_frames, film.clip.chapters, strict=True)
        starts = {f"{film.camera}/{chapter.path.name}": first for first, chapter in chapters}
        first = np.array([starts.get(file, -1) for file in instants.files_of(film.camera)], np.int64)
        rows = instants.file_rows_of(film.camera)
        nearest = np.searchsorted(film.clip.even_frames, rows + first).clip(0, len(film.frames) - 1)
        number = np.where((rows >= 0) & (first >= 0), nearest, -1)
        taken = np.where(number >= 0, film.frames.capture_ns[nearest], UNKNOWN)
        return number, taken, np.where(number >= 0, film.frames.bound_ns[nearest], 0)


Arrays = dict[str, npt.NDArray[Any] | Blocks]
Fill = Callable[[HeadsetFrames, str, StoredStream], Arrays]

NOT_TRACKED = "no packet with a pose stands beside a frame"
HEAD_TRACKED = "head_tracked"
"""Array of packets with a pose: false if the headset had lost tracking."""
PARTS = {
    "head": spatial_input.HEAD,
    "eye": spatial_input.EYE_RAY,
    "left_hand": spatial_input.LEFT_HAND,
    "right_hand": spatial_input.RIGHT_HAND,
}
"""Prefix of fields of spatial input -> their bit of `valid`."""


class NothingThere(Exception):
    """A recording has no data of a kind; the message is the reason."""


def save_arrays(path: Path, made_of: str, arrays: Arrays, *, force: bool) -> None:
    """Write a file of arrays with the digest of their source. Raises OutputRefused."""
    with written(path, force=force) as part, ArraysFile(part, made_of) as file:
        for name, values in arrays.items():
            file.add(name, values)


def frames_of(frames: HeadsetFrames, frame: Int64) -> Arrays:
    """Return the arrays that all files have."""
    return {"frame": frame, "capture_ns": frames.capture_ns[frame], "bound_ns": frames.bound_ns[frame]}


def poses(frames: HeadsetFrames, short: str, stream: StoredStream) -> Arrays:
    """Return the poses of camera frames: (n, 4, 4) row-vector matrices, sensor to world, metres.

    NaN while tracking was lost.
    """
    beside = beside_of(frames, short, stream)
    pose = _poses_beside(stream, beside.row)
    if pose is None:
        raise NothingThere("its packets carry no pose")
    tracked = np.asarray(is_tracked(pose))
    if not tracked.any():
        raise NothingThere(NOT_TRACKED)
    pose[~tracked] = np.nan
    return {
        **frames_of(frames, beside.frame),
        "sample_capture_ns": beside.taken_ns,
        HEAD_TRACKED: tracked,
        "pose": pose,
        "world": frames.worlds(stream, beside.row),
        **_lens_beside(frames, stream, beside.row),
    }


def _lens_beside(frames: HeadsetFrames, stream: StoredStream, rows: Int64) -> Arrays:
    """Return focal length and principal point, each (n, 2) pixels; NaN if a packet cannot be decoded.

    Empty for cameras without them in their packets, which have a fixed calibration.
    """
    sensor = frames.recording.stored.sensor(stream.name)
    if sensor is None or not sensor.is_front_camera or sensor.cut is None:
        return {}
    lens = np.full((len(rows), 4), np.nan)
    for place, row in enumerate(rows.tolist()):
        try:
            optics = sensor.optics(sensor.cut(stream.payload(row)).metadata)
        except SensorError:
            continue
        if optics is not None:
            lens[place] = optics
    return {"focal_px": lens[:, :2], "principal_px": lens[:, 2:]}


def _poses_beside(stream: StoredStream, rows: Int64) -> npt.NDArray[np.float32] | None:
    """Return the poses of the packets in `rows` as sent; None if the packets have none."""
    stored = stream.poses()
    return None if stored is None or len(stored) != len(stream) else stored[rows]


def records(frames: HeadsetFrames, short: str, stream: StoredStream) -> Arrays:
    """Return head, gaze and hands: one array per field, of hands such as `left_hand_position`; `valid` has the bits.

    Invalid parts of spatial input are NaN.
    """
    beside, decoded = beside_of(frames, short, stream), read_records(stream)
    place = np.searchsorted(decoded.row, beside.row)
    last = len(decoded.row) - 1
    is_decoded = (place < len(decoded.row)) & (decoded.row[np.minimum(place, last)] == beside.row)
    if not is_decoded.any():
        raise NothingThere("no packet of it decodes")
    values = decoded.values[place[is_decoded]]
    pose = _poses_beside(stream, beside.row[is_decoded])
    fields = dict(_fields(values))
    if values.dtype == spatial_input.DTYPE:
        for part, bit in PARTS.items():  # packets repeat old values of a part whose bit is not set
            is_stale = (fields["valid"] & bit) == 0
            for name, field in fields.items():
                if name.startswith(part) and field.dtype.kind == "f":
                    field[is_stale] = np.nan
    return {
        **frames_of(frames, beside.frame[is_decoded]),
        "sample_capture_ns": beside.taken_ns[is_decoded],
        **({} if pose is None else {HEAD_TRACKED: np.asarray(is_tracked(pose))}),
        "world": frames.worlds(stream, beside.row[is_decoded]),
        **fields,
    }


def _fields(values: npt.NDArray[np.void]) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    for name in values.dtype.names or ():
        field = values[name]
        if field.dtype.names is None:
            yield name, field
        else:
            yield from ((f"{name}_{part}", values) for part, values in _fields(field))


def samples(frames: HeadsetFrames, short: str, stream: StoredStream) -> Arrays:
    """Return all samples of an inertial sensor, and for each frame the range [first, stop) until the next frame.

    Samples of a pause are NaN. The samples are read in blocks.
    """
    clock = inertial_clock(stream)
    if clock is None:
        raise NothingThere("no packet of it decodes")
    try:
        first, stop = frames.slices(short)
    except KeyError:
        raise NothingThere("the frame index does not hold it") from None
    count = sum(len(block) for block in blocks_of_samples(stream))
    scale, shown = frames.recording.stored.si_scale(stream.name), np.flatnonzero(~frames.hidden)
    sensor = frames.recording.stored.sensor(stream.name)
    assert sensor is not None, "a stream of a headset"
    is_scaled_gyroscope = scale is not None and sensor.is_gyroscope
    unit = "rad/s" if is_scaled_gyroscope else str(sensor.details(Profile()).get("unit", ""))

    def measured() -> Iterator[npt.NDArray[np.float32]]:
        for taken_ns, block in _timed(frames, stream, clock):
            xyz = block["xyz"] * np.float32(scale or 1.0)
            xyz[in_pauses(taken_ns, frames.host.bound_ns, frames.pauses)] = np.nan
            yield xyz

    return {
        **frames_of(frames, shown),
        "first": first[shown],
        "stop": stop[shown],
        "sample_capture_ns": Blocks(
            (count,), np.dtype("<i8"), (ns for ns, _ in _timed(frames, stream, clock))
        ),
        "xyz": Blocks((count, 3), np.dtype("<f4"), measured()),
        "unit": np.array(unit),
    }


def _timed(
    frames: HeadsetFrames, stream: StoredStream, clock: InertialClock
) -> Iterator[tuple[Int64, npt.NDArray[np.void]]]:
    """Yield (capture times, samples) by block."""
    done = 0
    for block in blocks_of_samples(stream):
        ticks = clock.repair.ticks(block["vinyl_ns"], first_sample=done)
        yield frames.host.to_host_ns(ticks), block
        done += len(block)


def beside_of(frames: HeadsetFrames, short: str, stream: StoredStream) -> FrameSamples:
    """Return the samples matched to frames. Raises NothingThere."""
    try:
        matched = frames.beside(short, stream)
    except KeyError:
        raise NothingThere("the frame index does not hold it") from None
    if not len(matched.frame):
        raise NothingThere("no packet of it is near a frame")
    return matched

"""The frames that a recording's synchronized data are counted in: those of the master of its index, from 0.

Each has a time on the capture clock, and so has every sample of the headset that stands beside it.
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
    """The samples of one stream that stand beside frames: `frame`, `row` and `taken_ns` (n,), one a line."""

    frame: Int64
    row: Int64
    taken_ns: Int64


@dataclass(frozen=True)
class Film:
    """A camera's film: its name, its clip, and when its pictures were taken."""

    camera: str
    clip: Clip
    frames: FilmTimes


@dataclass(frozen=True)
class HeadsetFrames:
    """The frames of one recording; `host` puts its headset's ticks on the capture clock."""

    recording: OpenedRecording
    headset: str
    host: HostClock
    pauses: Pauses = ()
    "When nothing is to be seen; frames that may have been taken then have no partner."
    film: Film | None = None
    "The film of the camera, where there is one."

    def __len__(self) -> int:
        """Count the frames."""
        return len(self.instants)

    @property
    def instants(self) -> Instants:
        """The frames as `sync` indexed them."""
        return self.recording.stored.instants

    @cached_property
    def capture_ns(self) -> Int64:
        """When each frame was taken, (n,)."""
        stream = self.stream(self.instants.master)
        if stream is None:
            return self.host.to_host_ns(self.instants.ticks)
        return self.taken_ns(stream, self.instants.rows_of(self.instants.master))

    @cached_property
    def bound_ns(self) -> Int64:
        """How far `capture_ns` may be off, (n,)."""
        return self.film_numbers[2] if self.is_of_film else np.full(len(self), self.host.bound_ns)

    @property
    def is_of_film(self) -> bool:
        """Return whether the frames are the pictures of the camera's film."""
        return self.film is not None and self.instants.master == self.film.camera

    def untaken(self) -> int:
        """Count the frames that were never taken, from the first picture of the camera's film to the last."""
        filmed = self.film.frames.capture_ns if self.film is not None else np.empty(0, np.int64)
        filmed = filmed[filmed != UNKNOWN]
        if not len(filmed) or len(self) < 2:
            return 0
        taken = self.capture_ns[(self.capture_ns > filmed[0]) & (self.capture_ns < filmed[-1])]
        steps = np.diff(np.concatenate([filmed[:1], taken, filmed[-1:]]))
        return int((steps / np.median(np.diff(self.capture_ns)) - 0.5).clip(0).astype(np.int64).sum())

    @cached_property
    def hidden(self) -> npt.NDArray[np.bool_]:
        """Which frames may have been taken in a pause, (n,)."""
        return in_pauses(self.capture_ns, self.bound_ns, self.pauses)

    def stream(self, short: str) -> StoredStream | None:
        """Return a stream of the headset; None where it was not recorded or sent nothing."""
        name = f"{self.headset}/{short}"
        stored = self.recording.stored
        return stored[name] if name in stored.streams and len(stored[name]) else None

    def taken_ns(self, stream: StoredStream, rows: Int64) -> Int64:
        """Return when the packets of some rows were taken, on the capture clock."""
        index = stream.index[rows]
        near = index["host_ns"].astype(np.int64)
        return self.host.to_host_ns(index["device_ticks"].astype(np.int64), near_host_ns=near)

    def beside(self, short: str, stream: StoredStream) -> FrameSamples:
        """Return the sample of a stream beside each frame; frames without one are left out. Raises KeyError."""
        rows = self.instants.rows_of(self._column(short))
        frame = np.flatnonzero((rows >= 0) & ~self.hidden)
        taken_ns = self.taken_ns(stream, rows[frame])
        shown = ~in_pauses(taken_ns, self.host.bound_ns, self.pauses)
        return FrameSamples(frame[shown], rows[frame][shown], taken_ns[shown])

    def slices(self, short: str) -> tuple[Int64, Int64]:
        """Return the half-open range of samples from each frame to the next. Raises KeyError."""
        return self.instants.slices_of(self._column(short))

    def worlds(self, stream: StoredStream, rows: Int64) -> Int64:
        """Return the world frame of some packets, (n,): poses of different ones cannot be compared."""
        return self.recording.worlds_of(stream.name)[rows].astype(np.int64)

    def _column(self, short: str) -> str:
        full = f"{self.headset}/{short}"
        return full if full in (*self.instants.names, *self.instants.runs) else short

    @cached_property
    def film_numbers(self) -> tuple[Int64, Int64, Int64]:
        """The picture of the camera's film beside each frame, -1 for none, when it was taken, and the bound."""
        instants, film = self.instants, self.film
        if film is None or film.camera not in instants.names:
            none = np.full(len(self), -1)
            return none, np.full(len(self), UNKNOWN), np.zeros(len(self), np.int64)
        chapters = zip(film.clip.first_frames, film.clip.chapters, strict=True)
        starts = {f"{film.camera}/{chapter.path.name}": first for first, chapter in chapters}
        first = np.array([starts.get(file, -1) for file in instants.files_of(film.camera)], np.int64)
        rows = instants.file_rows_of(film.camera)
        there = np.searchsorted(film.clip.even_frames, rows + first).clip(0, len(film.frames) - 1)
        number = np.where((rows >= 0) & (first >= 0), there, -1)
        taken = np.where(number >= 0, film.frames.capture_ns[there], UNKNOWN)
        return number, taken, np.where(number >= 0, film.frames.bound_ns[there], 0)


Arrays = dict[str, npt.NDArray[Any] | Blocks]
Fill = Callable[[HeadsetFrames, str, StoredStream], Arrays]

NOT_TRACKED = "no packet with a pose stands beside a frame"
HEAD_TRACKED = "head_tracked"
"""Array that is false where the headset did not know where it was, for packets that carry a pose."""
PARTS = {
    "head": spatial_input.HEAD,
    "eye": spatial_input.EYE_RAY,
    "left_hand": spatial_input.LEFT_HAND,
    "right_hand": spatial_input.RIGHT_HAND,
}
"""How the fields of spatial input begin that a bit of `valid` is about."""


class NothingThere(Exception):
    """A kind of data of which a recording holds nothing; the message says why."""


def save_arrays(path: Path, made_of: str, arrays: Arrays, *, force: bool) -> None:
    """Write a file of arrays, and what they were made of. Raises OutputRefused."""
    with written(path, force=force) as part, ArraysFile(part, made_of) as file:
        for name, values in arrays.items():
            file.add(name, values)


def frames_of(frames: HeadsetFrames, frame: Int64) -> Arrays:
    """Return what all files say of their frames."""
    return {"frame": frame, "capture_ns": frames.capture_ns[frame], "bound_ns": frames.bound_ns[frame]}


def poses(frames: HeadsetFrames, short: str, stream: StoredStream) -> Arrays:
    """Return the poses that came with pictures: (n, 4, 4) row-vector matrices, sensor to world, metres.

    Where tracking was lost they are NaN.
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
    """Return the focal length and the principal point (n, 2) of each picture, pixels; NaN where it cannot be read.

    Nothing for a camera whose packets do not tell them: its constants do.
    """
    sensor = frames.recording.stored.sensor(stream.name)
    if sensor is None or not sensor.is_front_camera or sensor.cut is None:
        return {}
    lens = np.full((len(rows), 4), np.nan)
    for place, row in enumerate(rows.tolist()):
        try:
            found = sensor.optics(sensor.cut(stream.payload(row)).metadata)
        except SensorError:
            continue
        lens[place] = lens[place] if found is None else found
    return {"focal_px": lens[:, :2], "principal_px": lens[:, 2:]}


def _poses_beside(stream: StoredStream, rows: Int64) -> npt.NDArray[np.float32] | None:
    """Return the poses of some packets as sent; None where the packets carry none."""
    stored = stream.poses()
    return None if stored is None or len(stored) != len(stream) else stored[rows]


def records(frames: HeadsetFrames, short: str, stream: StoredStream) -> Arrays:
    """Return head, gaze and hands: one array a field, hands' as `left_hand_position`; `valid` holds the bits.

    What spatial input repeats of a part that it does not see is NaN.
    """
    beside, found = beside_of(frames, short, stream), read_records(stream)
    place = np.searchsorted(found.row, beside.row)
    there = (place < len(found.row)) & (found.row[np.minimum(place, len(found.row) - 1)] == beside.row)
    if not there.any():
        raise NothingThere("no packet of it decodes")
    values = found.values[place[there]]
    pose = _poses_beside(stream, beside.row[there])
    fields = dict(_fields(values))
    if values.dtype == spatial_input.DTYPE:
        for part, bit in PARTS.items():  # the stale values of a part whose bit is not set
            unseen = (fields["valid"] & bit) == 0
            for name, field in fields.items():
                if name.startswith(part) and field.dtype.kind == "f":
                    field[unseen] = np.nan
    return {
        **frames_of(frames, beside.frame[there]),
        "sample_capture_ns": beside.taken_ns[there],
        **({} if pose is None else {HEAD_TRACKED: np.asarray(is_tracked(pose))}),
        "world": frames.worlds(stream, beside.row[there]),
        **fields,
    }


def _fields(values: npt.NDArray[np.void]) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    for name in values.dtype.names or ():
        field = values[name]
        if field.dtype.names is None:
            yield name, field
        else:
            yield from ((f"{name}_{part}", one) for part, one in _fields(field))


def samples(frames: HeadsetFrames, short: str, stream: StoredStream) -> Arrays:
    """Return all samples of an inertial sensor, and of each frame the range [first, stop) until the next one.

    Samples of a pause are NaN. Some packets are in memory at a time.
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
    assert sensor is not None, "only a headset's streams are asked for"
    is_turning = scale is not None and sensor.is_gyroscope
    unit = "rad/s" if is_turning else str(sensor.details(Profile()).get("unit", ""))

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
    """Yield when the samples were taken, and the samples, block by block."""
    done = 0
    for block in blocks_of_samples(stream):
        ticks = clock.repair.ticks(block["vinyl_ns"], first_sample=done)
        yield frames.host.to_host_ns(ticks), block
        done += len(block)


def beside_of(frames: HeadsetFrames, short: str, stream: StoredStream) -> FrameSamples:
    """Return the samples beside frames. Raises NothingThere."""
    try:
        found = frames.beside(short, stream)
    except KeyError:
        raise NothingThere("the frame index does not hold it") from None
    if not len(found.frame):
        raise NothingThere("no packet of it is near a frame")
    return found

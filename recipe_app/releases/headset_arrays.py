"""What stands in the arrays of a recording's synchronized data: `.npz` files that NumPy reads without pickle.

In each, line k belongs to frame `frame[k]`, taken at `capture_ns[k]` give or take `bound_ns[k]`; what stands there
was taken at `sample_capture_ns[k]`. Frames without a partner are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from recipe_app.releases.headset_frames import Beside, HeadsetFrames
from sensors.array_types import Int64
from sensors.hololens.profile import Profile
from storage.exports.arrays_file import Blocks
from storage.privacy import in_pauses
from storage.reading.inertial import InertialClock, blocks_of_samples, inertial_clock
from storage.reading.records import read_records
from storage.recording import StoredStream

Arrays = dict[str, npt.NDArray[Any] | Blocks]
Fill = Callable[[HeadsetFrames, str, StoredStream], Arrays]

NOT_TRACKED = "no packet with a pose stands beside a frame"


class NothingThere(Exception):
    """A kind of data of which a recording holds nothing; the message says why."""


def frames_of(frames: HeadsetFrames, frame: Int64) -> Arrays:
    """Return what all files say of their frames."""
    return {"frame": frame, "capture_ns": frames.capture_ns[frame], "bound_ns": frames.bound_ns[frame]}


def poses(frames: HeadsetFrames, short: str, stream: StoredStream) -> Arrays:
    """Return the poses that came with pictures: (n, 4, 4) row-vector matrices, sensor to world, metres."""
    stored, beside = stream.poses(), beside_of(frames, short, stream)
    if stored is None or len(stored) != len(stream):
        raise NothingThere("its packets carry no pose")
    tracked = stored[beside.row, 3, 3] != 0
    if not tracked.any():
        raise NothingThere(NOT_TRACKED)
    frame, row = beside.frame[tracked], beside.row[tracked]
    return {
        **frames_of(frames, frame),
        "sample_capture_ns": beside.taken_ns[tracked],
        "pose": stored[row],
        "world": frames.worlds(stream, row),
    }


def records(frames: HeadsetFrames, short: str, stream: StoredStream) -> Arrays:
    """Return head, gaze and hands: one array a field, hands' as `left_hand_position`; `valid` holds the bits."""
    beside, found = beside_of(frames, short, stream), read_records(stream)
    place = np.searchsorted(found.row, beside.row)
    there = (place < len(found.row)) & (found.row[np.minimum(place, len(found.row) - 1)] == beside.row)
    if not there.any():
        raise NothingThere("no packet of it decodes")
    values = found.values[place[there]]
    return {
        **frames_of(frames, beside.frame[there]),
        "sample_capture_ns": beside.taken_ns[there],
        "world": frames.worlds(stream, beside.row[there]),
        **dict(_fields(values)),
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
    scale, shown = frames.recording.si_scale(stream.name), np.flatnonzero(~frames.hidden)
    return {
        **frames_of(frames, shown),
        "first": first[shown],
        "stop": stop[shown],
        "sample_capture_ns": Blocks(
            (count,), np.dtype("<i8"), (ns for ns, _ in _timed(frames, stream, clock))
        ),
        "xyz": Blocks((count, 3), np.dtype("<f4"), _measured(frames, stream, clock, scale or 1.0)),
        "unit": np.array(_unit(frames, stream, is_si=scale is not None)),
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


def _measured(
    frames: HeadsetFrames, stream: StoredStream, clock: InertialClock, scale: float
) -> Iterator[npt.NDArray[np.float32]]:
    for taken_ns, block in _timed(frames, stream, clock):
        xyz = block["xyz"] * np.float32(scale)
        xyz[in_pauses(taken_ns, frames.host.bound_ns, frames.pauses)] = np.nan
        yield xyz


def _unit(frames: HeadsetFrames, stream: StoredStream, *, is_si: bool) -> str:
    sensor = frames.recording.sensor(stream.name)
    assert sensor is not None, "only a headset's streams are asked for"
    return "rad/s" if is_si and sensor.is_gyroscope else str(sensor.details(Profile()).get("unit", ""))


def beside_of(frames: HeadsetFrames, short: str, stream: StoredStream) -> Beside:
    """Return the samples beside frames. Raises NothingThere."""
    try:
        found = frames.beside(short, stream)
    except KeyError:
        raise NothingThere("the frame index does not hold it") from None
    if not len(found.frame):
        raise NothingThere("no packet of it is near a frame")
    return found

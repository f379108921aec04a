"""Depth frames of a recording with their poses in the world, read one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kitchensync.reader.cameras.recorded import TICKS_PER_S, constants_of, look_up_table, rig_from
from kitchensync.reader.recording_source import RecordingSource
from kitchensync.sensors.hololens.catalogue import STREAMS, headset_stream
from kitchensync.sensors.hololens.headset_stream import DEPTH
from kitchensync.shell.array_types import Floats32, UInt16
from kitchensync.storage.geometry.clouds import DepthCamera, moved
from kitchensync.storage.geometry.errors import Refused
from kitchensync.storage.geometry.reference_frames import Transform, tracked, world_from_local
from kitchensync.storage.geometry.wrapping import AHAT_ALIAS_MM, without_wrapped
from kitchensync.storage.recording import StoredStream

CHOICE = sorted(
    (name for name, stream in STREAMS.items() if stream.kind == DEPTH and stream.has_constants),
    key=lambda name: -STREAMS[name].farthest_mm,
)
"Depth streams that can be placed in the world, the best first: far depth sees the room, near depth the hands."


@dataclass(frozen=True)
class DepthView:
    """One depth frame and its pose."""

    row: int
    ticks: int
    depth_mm: UInt16
    "(h, w) along the ray, 0 = invalid; wrapped pixels are invalid."
    wrapped: int
    "Number of wrapped pixels, which were set to 0."
    world_from_depth: Transform
    "(4, 4) column-vector, metres."
    world: int
    "Number of the world frame."


@dataclass(frozen=True)
class Rows:
    """Rows of the frames that are used, and counts of those that are not."""

    rows: range
    world: int
    untracked: int
    other_world: int

    def skipped(self, stream: StoredStream) -> dict[str, int]:
        """Return the counts of the frames that were not used, by reason."""
        return {
            "untracked": self.untracked,
            "other_world": self.other_world,
            "undecodable": len(stream.bad),
        }


class DepthSource:
    """One depth stream of a recording, its frames read lazily. Raises Refused without constants."""

    def __init__(self, recording: RecordingSource, name: str) -> None:
        stored = recording.stored
        self.stream: StoredStream = stored[name]
        self.name = name
        self.headset = name.partition("/")[0]
        self.table = look_up_table(stored, name)
        self._wraps = headset_stream(name.rpartition("/")[2]).wraps
        self.camera = DepthCamera(self.table)
        self.rig_from_depth = rig_from(stored, name)
        self.ticks = self.stream.index["device_ticks"].astype(np.int64)
        self.worlds = recording.worlds_of(name)
        alias = constants_of(stored, name).get("alias")
        self.bright = 0.0
        "The largest reflectance of near depth so far, an input of `without_wrapped`."
        self._alias_mm = float(np.asarray(alias.values)) if alias is not None else AHAT_ALIAS_MM

    def rows(self, start_s: float = 0.0, end_s: float = np.inf) -> Rows:
        """Choose frames by seconds since the first frame, in the world frame that most of them are in.

        Raises Refused if no frame has a pose.
        """
        poses = self.stream.poses()
        if poses is None or not len(self.ticks):
            raise Refused(f"{self.name} has no depth frames with poses")
        at_s = (self.ticks - self.ticks[0]) / TICKS_PER_S
        in_span = (at_s >= start_s) & (at_s < end_s)
        has_pose = in_span & tracked(poses)
        if not has_pose.any():
            raise Refused(f"{self.name} has no frame with a pose in this span; it lasts {at_s[-1]:.1f} s")
        world = int(np.bincount(self.worlds[has_pose]).argmax())
        other = int(np.count_nonzero(has_pose & (self.worlds != world)))
        first, last = np.flatnonzero(in_span)[[0, -1]]
        rows = range(int(first), int(last) + 1)
        return Rows(rows, world, int(np.count_nonzero(in_span & ~has_pose)), other)

    def views(self, start: int, stop: int) -> Iterator[DepthView]:
        """Yield the frames [start, stop) that have a pose, one in memory at a time."""
        for frame in self.stream.depth(start, stop):
            if frame.pose is None:
                continue
            pose = world_from_local(frame.pose) @ self.rig_from_depth
            depth, wrapped = frame.depth_mm, 0
            if self._wraps and frame.brightness is not None:
                unwrapped = without_wrapped(depth, frame.brightness, self._alias_mm, self.bright)
                self.bright = unwrapped.bright
                depth, wrapped = unwrapped.depth_mm, int(np.count_nonzero(unwrapped.wrapped))
            yield DepthView(frame.row, frame.device_ticks, depth, wrapped, pose, int(self.worlds[frame.row]))

    def points(self, view: DepthView) -> tuple[Floats32, npt.NDArray[np.intp]]:
        """Return the points (n, 3) of a frame in the world, metres, and the depth pixel of each."""
        points, order = self.camera.points(view.depth_mm)
        return moved(view.world_from_depth, points), order


class NearestDepth:
    """Finds the depth frame nearest to each of rising instants, with two frames in memory."""

    WITHIN_S = 0.3
    "Largest distance of a frame from the instant, seconds."

    def __init__(self, source: DepthSource) -> None:
        self._source = source
        self._views: Iterator[DepthView] | None = None
        self._two: list[DepthView] = []

    def at(self, ticks: int) -> DepthView | None:
        """Return the frame nearest to an instant, None if none is within `WITHIN_S`."""
        if self._views is None:
            first = int(np.searchsorted(self._source.ticks, ticks - self.WITHIN_S * TICKS_PER_S))
            self._views = self._source.views(first, len(self._source.ticks))
        while not self._two or self._two[-1].ticks < ticks:
            following = next(self._views, None)
            if following is None:
                break
            self._two = [*self._two[-1:], following]
        near = min(self._two, key=lambda view: abs(view.ticks - ticks), default=None)
        if near is None or abs(near.ticks - ticks) > self.WITHIN_S * TICKS_PER_S:
            return None
        return near


def depth_stream(recording: RecordingSource, name: str | None = None) -> str:
    """Return the full name of a depth stream, by its name or the best one without a name. Raises Refused."""
    available = [
        full for kind in CHOICE for full in recording.stored.streams if full.rpartition("/")[2] == kind
    ]
    chosen = [full for full in available if name is None or name in (full, full.rpartition("/")[2])]
    if not chosen:
        raise Refused(
            f"{recording.id} has no depth stream{f' {name}' if name else ''} that can be placed in the world;"
            f" available: {', '.join(available) or 'none'}"
        )
    return chosen[0]

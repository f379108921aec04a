"""Head, hands and gaze of the person who wears the headset, in the world, metres."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kitchensync.reader.recording_source import RecordingSource
from kitchensync.reader.timed_stream import TimedStream, interpolated
from kitchensync.sensors.hololens.catalogue import headset_stream
from kitchensync.sensors.hololens.streams import eye_tracking, spatial_input
from kitchensync.shell.array_types import Floats, Floats32, Int64
from kitchensync.storage.reading.records import Records
from kitchensync.storage.timeline.pose_track import PoseTrack, rotation_wxyz, transforms_of


class Hands(NamedTuple):
    """Joints of both hands in the world, (26, 3) or (m, 26, 3) metres, NaN where a hand was not tracked."""

    left: Floats32
    right: Floats32


class GazeRay(NamedTuple):
    """A ray from between the eyes in the world: origin in metres, direction of length 1.

    (3,) or (m, 3), NaN where the eyes were not tracked.
    """

    origin: Floats
    direction: Floats


class BodyStream(TimedStream):
    """Head, hands or gaze, one record for each packet; all three share the records, which are read once."""

    def __init__(self, recording: RecordingSource, name: str, source: str) -> None:
        """`source` is the stream of the records, such as `hololens/spatial_input`."""
        super().__init__(recording, name)
        self.source, self.stored = source, recording.stored[source]

    @cached_property
    def _records(self) -> Records:
        return self.recording.records(self.source)

    @property
    def rows(self) -> Int64:
        """The packet of each value, (n,)."""
        return self._records.row

    @cached_property
    def worlds(self) -> npt.NDArray[np.int32]:
        """World frame of each value, (n,): counted from 0 at each start of the headset's app."""
        return self.recording.worlds_of(self.source)[self.rows]

    def __len__(self) -> int:
        """Count the values."""
        return len(self.rows)

    @cached_property
    def session_ns(self) -> Int64:
        """Session time of each value, (n,) int64 ns. Raises NotKnown."""
        arrived_ns = self.stored.index["host_ns"][self.rows].astype(np.int64)
        device = self.name.partition("/")[0]
        return self.recording.clock.of_ticks(device, self._records.device_ticks, arrived_ns)

    def _between(self, values: npt.NDArray[Any], times: npt.ArrayLike) -> Floats:
        """Interpolate (n, k) at session times (m,), but not between world frames."""
        out = np.full((len(np.atleast_1d(np.asarray(times))), values.shape[1]), np.nan)
        for world in np.unique(self.worlds):
            numbers = self._in_time[self.worlds[self._in_time] == world]
            sampled = interpolated(self.times[numbers], values[numbers], times)
            out = np.where(np.isnan(out), sampled, out)
        return out


class HeadStream(BodyStream):
    """`world_from_head` (4, 4), column vectors: x right, y up, z to the back; NaN where it was not tracked."""

    kind = "head poses"

    @cached_property
    def _track(self) -> PoseTrack:
        values = self._records.values
        up, back = values["head_up"].astype(np.float64), -values["head_forward"].astype(np.float64)
        turns = rotation_wxyz(np.stack([np.cross(up, back), up, back], axis=-1))
        place = values["head_position"].astype(np.float64)
        place[~self._records.has(spatial_input.HEAD)] = np.nan
        return PoseTrack(self.session_ns // 100, place, turns, self.worlds, self.name)

    @cached_property
    def values(self) -> Floats:
        """All poses, (n, 4, 4)."""
        return transforms_of(self._track.position_m, self._track.rotation_wxyz)

    def _value(self, number: int) -> Floats:
        return self.values[number]

    def sample(self, times: npt.ArrayLike) -> Floats:
        """Interpolate at session times (m,), (m, 4, 4).

        NaN over gaps of 0.1 s, where tracking was lost and between world frames.
        """
        ticks = np.rint(np.atleast_1d(np.asarray(times, np.float64)) * 1e7).astype(np.int64)
        return self._track.at(ticks).world_from_local


class HandStream(BodyStream):
    """`Hands` of each packet; `joints` names the 26."""

    kind = "readings of hands"
    joints = spatial_input.JOINTS

    @cached_property
    def left(self) -> Floats32:
        """Joints of the left hand, (n, 26, 3) metres, NaN where it was not tracked."""
        return self._joints("left_hand", spatial_input.LEFT_HAND)

    @cached_property
    def right(self) -> Floats32:
        """Joints of the right hand, (n, 26, 3) metres, NaN where it was not tracked."""
        return self._joints("right_hand", spatial_input.RIGHT_HAND)

    def _joints(self, hand: str, bit: int) -> Floats32:
        position: Floats32 = self._records.values[hand]["position"].copy()
        position[~self._records.has(bit)] = np.nan
        return position

    def _value(self, number: int) -> Hands:
        return Hands(self.left[number], self.right[number])

    def _several(self, numbers: Int64) -> Any:
        return Hands(self.left[numbers], self.right[numbers])

    def sample(self, times: npt.ArrayLike) -> Hands:
        """Interpolate at session times (m,): `Hands` of (m, 26, 3), NaN next to values without that hand."""
        flat = np.concatenate(
            [side.reshape(-1, 3 * len(self.joints)) for side in (self.left, self.right)], axis=1
        )
        both = self._between(flat, times).astype(np.float32).reshape(-1, 2, len(self.joints), 3)
        return Hands(both[:, 0], both[:, 1])


class GazeStream(BodyStream):
    """`GazeRay` of each packet of the eye tracker, or of spatial input where that was not recorded."""

    kind = "readings of gaze"

    @cached_property
    def _rays(self) -> tuple[Floats, Floats]:
        records = self._records
        if not headset_stream(self.source.rpartition("/")[2]).rays_from_own_pose:
            rays = records.values["eye_origin"], records.values["eye_direction"]
            return self._valid(*rays, records.has(spatial_input.EYE_RAY))
        origin, direction = records.values["combined"]["origin"], records.values["combined"]["direction"]
        poses = self.stored.poses()
        if poses is None:
            return self._valid(origin, direction, np.zeros(len(self), np.bool_))
        # The headset sends row-vector poses: a point of its own axes times the pose is in the world.
        poses = poses[self.rows].astype(np.float64)
        rotation, position = poses[:, :3, :3], poses[:, 3, :3]
        origin = np.einsum("ni,nij->nj", origin.astype(np.float64), rotation) + position
        direction = np.einsum("ni,nij->nj", direction.astype(np.float64), rotation)
        return self._valid(origin, direction, records.has(eye_tracking.COMBINED) & (poses[:, 3, 3] != 0))

    def _valid(self, origin: Any, direction: Any, is_valid: npt.NDArray[np.bool_]) -> tuple[Floats, Floats]:
        column = is_valid[:, None]
        return np.where(column, origin, np.nan), np.where(column, direction, np.nan)

    @property
    def origin(self) -> Floats:
        """Origin of each ray in the world, (n, 3) metres, NaN where the eyes were not tracked."""
        return self._rays[0]

    @property
    def direction(self) -> Floats:
        """Direction of each ray in the world, (n, 3) of length 1, NaN where the eyes were not tracked."""
        return self._rays[1]

    def _value(self, number: int) -> GazeRay:
        return GazeRay(self.origin[number], self.direction[number])

    def _several(self, numbers: Int64) -> Any:
        return GazeRay(self.origin[numbers], self.direction[numbers])

    def sample(self, times: npt.ArrayLike) -> GazeRay:
        """Interpolate at session times (m,): a `GazeRay` of (m, 3), NaN next to values without gaze."""
        both = self._between(np.concatenate([self.origin, self.direction], axis=1), times)
        direction = both[:, 3:] / np.linalg.norm(both[:, 3:], axis=1, keepdims=True)
        return GazeRay(both[:, :3], direction)

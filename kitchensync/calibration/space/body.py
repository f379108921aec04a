"""Hands and gaze of a recording in the world, at any instant."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from kitchensync.reader.cameras.recorded import TICKS_PER_S
from kitchensync.reader.recording_source import RecordingSource
from kitchensync.sensors.hololens.headset_stream import HeadsetStream
from kitchensync.sensors.hololens.streams import eye_tracking, spatial_input
from kitchensync.shell.array_types import Floats
from kitchensync.storage.geometry.reference_frames import transform_points, world_from_local
from kitchensync.storage.recording import StoredStream

LONGEST_GAP_S = 0.1
"Hands and eyes come 30 times a second; over longer gaps nobody knows."
SIDES = ("left", "right")
_FIRST_OF_FINGER = [i for i, name in enumerate(spatial_input.JOINTS) if name.endswith("metacarpal")]
BONES: tuple[tuple[int, int], ...] = (
    (0, 1),
    *((1, first) for first in _FIRST_OF_FINGER),
    *(
        (one, other)
        for first, end in pairwise([*_FIRST_OF_FINGER, len(spatial_input.JOINTS)])
        for one, other in pairwise(range(first, end))
    ),
)
"Pairs of joints that are drawn as a line."


@dataclass(frozen=True)
class Gaze:
    """A ray from the eyes."""

    origin_m: Floats
    direction: Floats
    "Unit vector."


@dataclass(frozen=True)
class Moment:
    """Hands and gaze at one instant, in the world."""

    world: int
    joints_m: dict[str, Floats] = field(default_factory=dict)
    "(26, 3) of each hand that was seen."
    radius_m: dict[str, Floats] = field(default_factory=dict)
    gaze: Gaze | None = None


class _Rows:
    """Packets of fixed layout around an instant: read one by one, the latest few kept."""

    def __init__(self, recording: RecordingSource, name: str, sensor: HeadsetStream) -> None:
        self.stream: StoredStream = recording.stored[name]
        self._sensor, self._kept = sensor, OrderedDict[int, np.void]()
        self._ticks, self._hidden = self.stream.index["device_ticks"].astype(np.int64), self.stream.hidden
        self.worlds = recording.worlds_of(name)

    def around(self, ticks: int) -> tuple[int, int, float] | None:
        """Return the rows before and after an instant and how far between; None over a gap, pause or new world."""
        after = int(np.searchsorted(self._ticks, ticks))
        if not 0 <= after < len(self._ticks) or self._hidden[max(after - 1, 0) : after + 1].any():
            return None
        if self._ticks[after] == ticks:
            return after, after, 0.0
        if after == 0:
            return None
        before, gap = after - 1, int(self._ticks[after] - self._ticks[after - 1])
        if gap > LONGEST_GAP_S * TICKS_PER_S or self.worlds[before] != self.worlds[after]:
            return None
        return before, after, float(ticks - self._ticks[before]) / gap

    def __getitem__(self, row: int) -> np.void:
        if row not in self._kept:
            payload = self.stream.payload(row)
            nothing = np.zeros(1, self._sensor.record)[0]
            self._kept[row] = nothing if row in self.stream.bad else self._sensor.decode(payload)
            while len(self._kept) > 8:
                self._kept.popitem(last=False)
        return self._kept[row]


class Body:
    """Reads hands and gaze of one headset. Streams that were not recorded give nothing."""

    def __init__(self, recording: RecordingSource, headset: str) -> None:
        def rows(sensor: HeadsetStream) -> _Rows | None:
            name = f"{headset}/{sensor.name}"
            return _Rows(recording, name, sensor) if name in recording.stored.streams else None

        self._spatial, self._eyes = rows(spatial_input.STREAM), rows(eye_tracking.STREAM)

    def at(self, ticks: int) -> Moment | None:
        """Return what is known at an instant, between the packets around it; None when nothing is."""
        spatial = self._spatial
        near = spatial.around(ticks) if spatial else None
        gaze = self._tracked_gaze(ticks)
        if spatial is None or near is None:
            return None if gaze is None else Moment(gaze[0], gaze=gaze[1])
        before, after, part = near
        world = int(spatial.worlds[before])
        one, other = spatial[before], spatial[after]
        valid = int(one["valid"]) & int(other["valid"])
        moment = Moment(world, gaze=gaze[1] if gaze and gaze[0] == world else None)
        for side, bit in zip(SIDES, (spatial_input.LEFT_HAND, spatial_input.RIGHT_HAND), strict=True):
            if valid & bit:
                begin, end = (hands[f"{side}_hand"]["position"].astype(float) for hands in (one, other))
                moment.joints_m[side] = _mix(begin, end, part)
                moment.radius_m[side] = one[f"{side}_hand"]["radius"].astype(float)
        if moment.gaze is None and valid & spatial_input.EYE_RAY:
            found = _gaze(
                one["eye_origin"], one["eye_direction"], other["eye_origin"], other["eye_direction"], part
            )
            return Moment(world, moment.joints_m, moment.radius_m, found)
        return moment

    def _tracked_gaze(self, ticks: int) -> tuple[int, Gaze] | None:
        """Return world frame and gaze by the eye tracker, which is faster and finer than spatial input's ray."""
        eyes = self._eyes
        near = eyes.around(ticks) if eyes else None
        if eyes is None or near is None:
            return None
        rays = []
        for row in near[:2]:
            pose, record = eyes.stream.pose(row), eyes[row]
            if pose is None or pose[3, 3] == 0 or not int(record["valid"]) & eye_tracking.COMBINED:
                return None
            turn = world_from_local(pose)
            rays += [
                transform_points(turn, record["combined"]["origin"][None])[0],
                turn[:3, :3] @ record["combined"]["direction"].astype(float),
            ]
        return int(eyes.worlds[near[0]]), _gaze(rays[0], rays[1], rays[2], rays[3], near[2])


def _mix(one: Floats, other: Floats, part: float) -> Floats:
    return one * (1 - part) + other * part


def _gaze(
    origin: npt.ArrayLike,
    way: npt.ArrayLike,
    next_origin: npt.ArrayLike,
    next_way: npt.ArrayLike,
    part: float,
) -> Gaze:
    direction = _mix(np.asarray(way, float), np.asarray(next_way, float), part)
    start = _mix(np.asarray(origin, float), np.asarray(next_origin, float), part)
    return Gaze(start, direction / np.linalg.norm(direction))

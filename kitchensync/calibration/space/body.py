"""Hands and gaze of a recording in world coordinates, at any instant."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field, replace
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

MAX_GAP_S = 0.1
"Longest gap between packets that is interpolated; hands and eyes are sent 30 times a second."
SIDES = ("left", "right")
_FIRST_OF_FINGER = [i for i, name in enumerate(spatial_input.JOINTS) if name.endswith("metacarpal")]
BONES: tuple[tuple[int, int], ...] = (
    (0, 1),
    *((1, first) for first in _FIRST_OF_FINGER),
    *(
        bone
        for first, end in pairwise([*_FIRST_OF_FINGER, len(spatial_input.JOINTS)])
        for bone in pairwise(range(first, end))
    ),
)
"Pairs of joints that are connected by a line."


Ray = tuple[npt.ArrayLike, npt.ArrayLike]
"""Origin and direction, (3,) each."""


@dataclass(frozen=True)
class Gaze:
    """A ray from the eyes."""

    origin_m: Floats
    direction: Floats
    "Unit vector."


@dataclass(frozen=True)
class Moment:
    """Hands and gaze at one instant, in world coordinates."""

    world: int
    joints_m: dict[str, Floats] = field(default_factory=dict)
    "(26, 3) of each tracked hand."
    radius_m: dict[str, Floats] = field(default_factory=dict)
    gaze: Gaze | None = None


class _Rows:
    """Packets with records of fixed layout, found by time and decoded on demand; the last few are cached."""

    def __init__(self, recording: RecordingSource, name: str, sensor: HeadsetStream) -> None:
        self.stream: StoredStream = recording.stored[name]
        self._sensor, self._cache = sensor, OrderedDict[int, np.void]()
        self._ticks, self._hidden = self.stream.index["device_ticks"].astype(np.int64), self.stream.hidden
        self.worlds = recording.worlds_of(name)

    def around(self, ticks: int) -> tuple[int, int, float] | None:
        """Return the rows around an instant and the fraction between them; None in a gap, pause or new world."""
        after = int(np.searchsorted(self._ticks, ticks))
        if not 0 <= after < len(self._ticks) or self._hidden[max(after - 1, 0) : after + 1].any():
            return None
        if self._ticks[after] == ticks:
            return after, after, 0.0
        if after == 0:
            return None
        before, gap = after - 1, int(self._ticks[after] - self._ticks[after - 1])
        if gap > MAX_GAP_S * TICKS_PER_S or self.worlds[before] != self.worlds[after]:
            return None
        return before, after, float(ticks - self._ticks[before]) / gap

    def __getitem__(self, row: int) -> np.void:
        if row not in self._cache:
            payload = self.stream.payload(row)
            empty = np.zeros(1, self._sensor.record)[0]
            self._cache[row] = empty if row in self.stream.bad else self._sensor.decode(payload)
            while len(self._cache) > 8:
                self._cache.popitem(last=False)
        return self._cache[row]


class Body:
    """Hands and gaze of one headset, as far as their streams were recorded."""

    def __init__(self, recording: RecordingSource, headset: str) -> None:
        def rows(sensor: HeadsetStream) -> _Rows | None:
            name = f"{headset}/{sensor.name}"
            return _Rows(recording, name, sensor) if name in recording.stored.streams else None

        self._spatial, self._eyes = rows(spatial_input.STREAM), rows(eye_tracking.STREAM)

    def at(self, ticks: int) -> Moment | None:
        """Return hands and gaze at an instant, interpolated between packets; None if neither is known."""
        spatial = self._spatial
        near = spatial.around(ticks) if spatial else None
        gaze = self._tracked_gaze(ticks)
        if spatial is None or near is None:
            return None if gaze is None else Moment(gaze[0], gaze=gaze[1])
        before, after, part = near
        world = int(spatial.worlds[before])
        first, second = spatial[before], spatial[after]
        valid = int(first["valid"]) & int(second["valid"])
        moment = Moment(world, gaze=gaze[1] if gaze and gaze[0] == world else None)
        for side, bit in zip(SIDES, (spatial_input.LEFT_HAND, spatial_input.RIGHT_HAND), strict=True):
            if valid & bit:
                begin, end = (hands[f"{side}_hand"]["position"].astype(float) for hands in (first, second))
                moment.joints_m[side] = _mix(begin, end, part)
                moment.radius_m[side] = first[f"{side}_hand"]["radius"].astype(float)
        if moment.gaze is None and valid & spatial_input.EYE_RAY:
            rays = [(record["eye_origin"], record["eye_direction"]) for record in (first, second)]
            return replace(moment, gaze=_gaze(rays[0], rays[1], part))
        return moment

    def _tracked_gaze(self, ticks: int) -> tuple[int, Gaze] | None:
        """Return world frame and gaze from the eye tracker, which is more accurate than the ray of spatial input."""
        eyes = self._eyes
        near = eyes.around(ticks) if eyes else None
        if eyes is None or near is None:
            return None
        rays: list[Ray] = []
        for row in near[:2]:
            pose, record = eyes.stream.pose(row), eyes[row]
            if pose is None or pose[3, 3] == 0 or not int(record["valid"]) & eye_tracking.COMBINED:
                return None
            world_from_eyes, ray = world_from_local(pose), record["combined"]
            origin = transform_points(world_from_eyes, ray["origin"][None])[0]
            rays.append((origin, world_from_eyes[:3, :3] @ ray["direction"].astype(float)))
        return int(eyes.worlds[near[0]]), _gaze(rays[0], rays[1], near[2])


def _mix(before: Floats, after: Floats, part: float) -> Floats:
    return before * (1 - part) + after * part


def _gaze(before: Ray, after: Ray, part: float) -> Gaze:
    """Return the gaze between two rays."""
    origin, direction = (
        _mix(np.asarray(first, float), np.asarray(second, float), part)
        for first, second in zip(before, after, strict=True)
    )
    return Gaze(origin, direction / np.linalg.norm(direction))

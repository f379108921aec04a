"""Project hands, gaze and outlines of objects into a camera's frames, with occlusion by depth."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kitchensync.calibration.space.body import Body, Gaze, Moment
from kitchensync.reader.cameras.depth_views import DepthSource, DepthView, NearestDepth
from kitchensync.reader.cameras.eyes import Shot, View
from kitchensync.reader.recording_source import RecordingSource
from kitchensync.shell.array_types import Floats
from kitchensync.storage.geometry.camera_models import inside
from kitchensync.storage.geometry.clouds import MM_PER_M, depth_edges, moved
from kitchensync.storage.geometry.reference_frames import inverse
from kitchensync.storage.geometry.registration import Surface, surface_of
from kitchensync.storage.geometry.visibility import PointsSeen, meets, seen_by

ASSUMED_GAZE_M = 1.5
"Assumed distance of a gaze that meets no depth."
SKIN_M = 0.03
"Tolerance of occlusion: joints are inside the hand, and depth of a moving hand is slightly older than the frame."


@dataclass(frozen=True)
class Sighting:
    """Hands, gaze and outlines in one frame."""

    hands: dict[str, PointsSeen] = field(default_factory=dict)
    "The 26 joints of each hand, in the order of `spatial_input.JOINTS`."
    gaze: PointsSeen | None = None
    "The point that is looked at."
    gaze_m: float | None = None
    "Its distance from the eyes by depth; None if the distance is assumed."
    edges: Floats = field(default_factory=lambda: np.empty((0, 2, 2)))
    "(n, 2, 2) pixels of start and end of each visible piece of an outline."
    depth_late_s: float | None = None
    "Time from the frame to the depth frame; None without one."
    unplaced: str = ""
    "Why the camera's pose is not known, empty if it is."


class SightingFinder:
    """Finds the sightings in frames of a camera that moves with a headset, in ascending time."""

    def __init__(self, recording: RecordingSource, headset: str, source: DepthSource | None = None) -> None:
        """`source` is the depth for occlusion and outlines; without it nothing is hidden."""
        self._body, self._source = Body(recording, headset), source
        self._nearest = NearestDepth(source) if source is not None else None
        self._edges: tuple[int, Floats] = (-1, np.empty((0, 2, 3)))

    def at(self, shot: Shot) -> Sighting:
        """Return the sighting in a frame, an empty one if the camera's pose is not known."""
        if shot.view is None:
            return Sighting(unplaced=shot.unplaced)
        moment = self._body.at(shot.ticks)
        depth = self._nearest.at(shot.ticks) if self._nearest is not None else None
        depth = depth if depth is not None and depth.world == shot.view.world else None
        surface: Surface | None = None
        edges: Floats = np.empty((0, 2, 2))
        if depth is not None:
            assert self._source is not None
            points, order = self._source.points(depth)
            surface = surface_of(shot.view.camera, moved(shot.view.camera_from_world, points), order)
            edges = self._outlines(shot.view, depth, surface)
        late_s = None if depth is None else (depth.ticks - shot.ticks) / 1e7
        if moment is None or moment.world != shot.view.world:
            return Sighting(edges=edges, depth_late_s=late_s)
        gaze, gaze_m = self._gaze(shot.view, moment, surface, depth)
        hands, camera_from_world = {}, shot.view.camera_from_world
        for side, joints in moment.joints_m.items():
            tolerance_m = moment.radius_m[side] + SKIN_M
            hands[side] = seen_by(shot.view.camera, camera_from_world, joints, surface, tolerance_m)
        return Sighting(hands, gaze, gaze_m, edges, late_s)

    def _outlines(self, view: View, depth: DepthView, surface: Surface) -> Floats:
        assert self._source is not None
        if self._edges[0] != depth.row:
            self._edges = depth.row, depth_edges(self._source.table, depth.depth_mm)
        pieces = self._edges[1]
        at = moved(view.camera_from_world @ depth.world_from_depth, pieces.reshape(-1, 3))
        pixels = view.camera.project(at)
        is_visible = inside(view.camera, pixels) & surface.shows(
            pixels, np.linalg.norm(at, axis=1) * MM_PER_M
        )
        visible = pixels.reshape(-1, 2, 2)[is_visible.reshape(-1, 2).all(axis=1)]
        return visible.astype(np.float64)

    def _gaze(
        self, view: View, moment: Moment, surface: Surface | None, depth: DepthView | None
    ) -> tuple[PointsSeen | None, float | None]:
        if moment.gaze is None:
            return None, None
        distance_m = None
        if depth is not None and self._source is not None:
            distance_m = gaze_distance_m(moment.gaze, self._source, depth)
        at = moment.gaze.origin_m + (distance_m or ASSUMED_GAZE_M) * moment.gaze.direction
        return seen_by(view.camera, view.camera_from_world, at[None], surface, SKIN_M), distance_m


def gaze_distance_m(gaze: Gaze, source: DepthSource, depth: DepthView) -> float | None:
    """Return the distance from the eyes at which the gaze meets the surface in a depth frame; None if it does not."""
    surface = Surface(depth.depth_mm, 1.0)
    return meets(source.table, inverse(depth.world_from_depth), surface, gaze.origin_m, gaze.direction)

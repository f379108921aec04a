"""Visibility of world points in a camera: position in its picture, and occlusion."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from kitchensync.shell.array_types import Floats
from kitchensync.storage.geometry.camera_models import Camera, inside
from kitchensync.storage.geometry.clouds import MM_PER_M
from kitchensync.storage.geometry.reference_frames import Transform, transform_points
from kitchensync.storage.geometry.registration import Surface

NEAREST_M, FARTHEST_M, GAZE_STEPS = 0.2, 6.0, 400  # steps are 5 cm at the far end, well within THICK_M
THICK_M = 0.15
"A ray that is first found farther than this behind a surface does not meet it."


class JointVisibility(IntEnum):
    """Visibility of a point in a camera."""

    VISIBLE = 0
    "In the picture, with no known surface in front of it."
    HIDDEN = 1
    "In the picture, behind a surface."
    OUTSIDE = 2
    "In front of the camera, outside its picture."
    BEHIND = 3
    "Behind the camera, or outside the range of its lens model."
    UNKNOWN = 4
    "The point is unknown."


@dataclass(frozen=True)
class PointsSeen:
    """Points in a picture."""

    pixels: Floats
    "(n, 2); NaN outside the field of the optics."
    distance_m: Floats
    "(n,) from the camera's centre."
    sight: npt.NDArray[np.int8]
    "(n,) of `JointVisibility`."

    @property
    def visible(self) -> npt.NDArray[np.bool_]:
        """Which points (n,) are visible."""
        return np.asarray(self.sight == JointVisibility.VISIBLE)


def seen_by(
    camera: Camera,
    camera_from_world: Transform,
    points: npt.ArrayLike,
    surface: Surface | None = None,
    radius_m: npt.ArrayLike = 0.0,
) -> PointsSeen:
    """Project points (n, 3) of the world, metres, into a picture and find which are visible.

    `surface` is the depth in the same camera; without it no point is hidden. `radius_m` (n,) is the depth of a point
    inside a surface, such as a joint in a finger. Points with NaN are UNKNOWN.
    """
    at = transform_points(camera_from_world, points)
    known = np.isfinite(at).all(1)
    at[~known] = 0.0
    pixels, away = np.asarray(camera.project(at), np.float64), np.linalg.norm(at, axis=1)
    sight = np.full(len(at), JointVisibility.VISIBLE, np.int8)
    imaged = np.isfinite(pixels).all(1)
    if surface is not None:
        near_mm = (away - np.asarray(radius_m)) * MM_PER_M
        sight[~surface.shows(pixels, near_mm)] = JointVisibility.HIDDEN
    sight[imaged & ~inside(camera, pixels)] = JointVisibility.OUTSIDE
    sight[~imaged] = JointVisibility.BEHIND
    sight[~known] = JointVisibility.UNKNOWN
    pixels[~known], away[~known] = np.nan, np.nan
    return PointsSeen(pixels, away, sight)


def pixels_in_picture(camera: Camera, camera_from_world: Transform, points: npt.ArrayLike) -> Floats:
    """Project points (..., 3) of the world, metres, into a picture: pixels (..., 2), NaN outside of it."""
    world = np.asarray(points, np.float64)
    seen = seen_by(camera, camera_from_world, world.reshape(-1, 3))
    return np.where(seen.visible[:, None], seen.pixels, np.nan).reshape(*world.shape[:-1], 2)


def meets(
    camera: Camera, camera_from_world: Transform, surface: Surface, origin: Floats, direction: Floats
) -> float | None:
    """Return the distance (m) along a world ray, (3,) and (3,) unit, to the surface in a depth camera.

    None if the ray meets no known surface, because it leaves the picture or passes behind an object.
    """
    along = np.geomspace(NEAREST_M, FARTHEST_M, GAZE_STEPS)
    at = transform_points(camera_from_world, origin + along[:, None] * direction)
    pixels, away = np.asarray(camera.project(at), np.float64), np.linalg.norm(at, axis=1)
    there = surface.at(pixels) / MM_PER_M
    known = there > 0
    behind = np.flatnonzero(known & (away >= there))
    if not len(behind):
        return None
    last = int(behind[0])
    if last == 0 or not known[last - 1] or away[last] - there[last] > THICK_M:
        return None
    before, after = there[last - 1] - away[last - 1], away[last] - there[last]
    part = before / max(before + after, 1e-9)
    return float(along[last - 1] + part * (along[last] - along[last - 1]))

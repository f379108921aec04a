"""How far a camera turned from one picture to the next, seen in its pictures: OpenCV and NumPy, no files.

Camera axes as in OpenCV: x right, y down, z forward. Points are measured from the middle of the picture in picture
widths, so that one lens serves every resolution.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import cv2
import numpy as np

from kitchensync.shell.array_types import Floats, Mask, UInt8

MOST_CORNERS = 300
CORNER_QUALITY = 0.01
CORNER_DISTANCE = 1 / 60  # of the width
SAME_PLACE_PX = 0.5  # tracked there and back
LEAST_POINTS = 30
LEAST_SHARE = 0.5
SOFT_SIGMAS = 2.0
LARGEST_RESIDUAL_PX = 2.0
TURN_STEPS = 8


@dataclass(frozen=True, slots=True)
class Tracks:
    """Points found in two successive pictures: `before` and `after` (n, 2), of pictures `width` pixels wide."""

    t0_s: float
    t1_s: float
    before: Floats
    after: Floats
    width: int


@dataclass(frozen=True, slots=True)
class LensModel:
    """Projection of directions to points: `pinhole` r = f tan(angle) or `fisheye` r = f angle (equidistant)."""

    kind: str
    focal: float

    @classmethod
    def of_view(cls, kind: str, degrees: float) -> LensModel:
        """Return a lens with a horizontal field of view of `degrees`."""
        half = np.radians(degrees / 2)
        return cls(kind, 0.5 / float(np.tan(half) if kind == "pinhole" else half))

    @property
    def view_deg(self) -> float:
        """Horizontal field of view."""
        half = np.arctan(0.5 / self.focal) if self.kind == "pinhole" else 0.5 / self.focal
        return float(np.degrees(2 * half))

    def directions(self, points: Floats) -> Floats:
        """Unit vectors (n, 3) of points (n, 2)."""
        points = np.asarray(points, dtype=np.float64)
        radius = np.linalg.norm(points, axis=1)
        angle = np.arctan(radius / self.focal) if self.kind == "pinhole" else radius / self.focal
        share = np.sin(angle) / np.maximum(radius, 1e-12)
        return np.column_stack([points * share[:, None], np.cos(angle)])


LENSES = tuple(
    LensModel.of_view(kind, degrees)
    for kind, views in (("pinhole", (50, 70, 90)), ("fisheye", (90, 120, 150)))
    for degrees in views
)
"""Tested lenses; a rough field of view is enough, as the scale of rotation is fitted afterwards."""


@dataclass(frozen=True, slots=True)
class ImageTurns:
    """Rotation vectors of the camera from `t0_s` to `t1_s` (n,), radians in its own axes (n, 3).

    `usable` (n,) are the pictures with enough consistent points.
    """

    t0_s: Floats
    t1_s: Floats
    radians: Floats
    usable: Mask


def track(pictures: Iterable[tuple[float, UInt8]]) -> Iterator[Tracks]:
    """Track corners from each picture (time in s, grey) to the next and back (Kanade-Lucas-Tomasi).

    Two pictures are in memory at a time. Corners are detected in each picture, so that errors do not accumulate.
    """
    last: tuple[float, UInt8] | None = None
    for t_s, picture in pictures:
        if last is not None:
            yield _tracked(last, (t_s, picture))
        last = (t_s, picture)


def _tracked(first: tuple[float, UInt8], second: tuple[float, UInt8]) -> Tracks:
    height, width = first[1].shape
    no_points = np.empty((0, 2), np.float32)
    corners = cv2.goodFeaturesToTrack(first[1], MOST_CORNERS, CORNER_QUALITY, width * CORNER_DISTANCE)
    if corners is None:
        return Tracks(first[0], second[0], no_points, no_points, width)
    forward, found_forward, _ = cv2.calcOpticalFlowPyrLK(
        first[1], second[1], corners, np.empty(0), winSize=(15, 15)
    )
    back, found_back, _ = cv2.calcOpticalFlowPyrLK(
        second[1], first[1], forward, np.empty(0), winSize=(15, 15)
    )
    distance = np.linalg.norm((back - corners).reshape(-1, 2), axis=1)
    good = (found_forward.ravel() == 1) & (found_back.ravel() == 1) & (distance < SAME_PLACE_PX)
    middle = np.array([(width - 1) / 2, (height - 1) / 2], np.float32)
    before, after = ((points.reshape(-1, 2)[good] - middle) / width for points in (corners, forward))
    return Tracks(first[0], second[0], before.astype(np.float32), after.astype(np.float32), width)


def image_turns(tracks: list[Tracks], lens: LensModel) -> ImageTurns:
    """Return the rotation of the camera between consecutive pictures, with a lens model."""
    radians = np.full((len(tracks), 3), np.nan)
    usable = np.zeros(len(tracks), dtype=bool)
    for k, pair in enumerate(tracks):
        if len(pair.before) < LEAST_POINTS:
            continue
        radians[k], near = turn_between(pair, lens)
        usable[k] = int(near.sum()) >= max(LEAST_POINTS, LEAST_SHARE * len(near))
    t0, t1 = (np.array([getattr(pair, name) for pair in tracks]) for name in ("t0_s", "t1_s"))
    return ImageTurns(t0, t1, radians, usable)


def turn_between(pair: Tracks, lens: LensModel) -> tuple[Floats, Mask]:
    """Return the rotation vector of the camera (3,), and the points consistent with it (n,).

    A static point has `before = R after` (directions). Gauss-Newton on the remaining small rotation, with weights
    that are robust to moving hands and food (Geman-McClure).
    """
    before, after = lens.directions(pair.before), lens.directions(pair.after)
    pixel = 1.0 / (lens.focal * pair.width)
    total = np.eye(3)
    residual = before - after
    weight = np.ones(len(before))
    for _ in range(TURN_STEPS):
        turned = after @ total.T
        residual = before - turned
        size = np.linalg.norm(residual, axis=1)
        sigma = max(1.4826 * float(np.median(size)), 0.05 * pixel)
        weight = 1.0 / (1.0 + (size / (SOFT_SIGMAS * sigma)) ** 2) ** 2
        # d(turn x turned) = residual: normal equations of the cross product
        outer = np.einsum("n,ni,nj->ij", weight, turned, turned)
        normal = np.eye(3) * float((weight * (turned**2).sum(axis=1)).sum()) - outer
        step = np.linalg.solve(normal, (weight[:, None] * np.cross(turned, residual)).sum(axis=0))
        total = np.asarray(cv2.Rodrigues(np.asarray(step, np.float64))[0], np.float64) @ total
        if float(np.abs(step).max()) < 1e-7:
            break
    return np.asarray(cv2.Rodrigues(total)[0], np.float64).ravel(), np.asarray(
        np.linalg.norm(residual, axis=1) < LARGEST_RESIDUAL_PX * pixel
    )

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
    """How directions become points: `pinhole` r = f tan(angle) or `fisheye` r = f angle (equidistant)."""

    kind: str
    focal: float

    @classmethod
    def of_view(cls, kind: str, degrees: float) -> LensModel:
        """Lens whose pictures are `degrees` wide from left to right."""
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
"""Lenses that are tried: the scale of rotation is fitted afterwards, so a rough field of view is enough."""


@dataclass(frozen=True, slots=True)
class ImageTurns:
    """Rotation vectors of the camera from `t0_s` to `t1_s` (n,), radians in its own axes (n, 3).

    `usable` (n,) are the pictures with enough points that turn alike.
    """

    t0_s: Floats
    t1_s: Floats
    radians: Floats
    usable: Mask


def track(pictures: Iterable[tuple[float, UInt8]]) -> Iterator[Tracks]:
    """Follow corners from each picture (time in s, grey) to the next, there and back (Kanade-Lucas-Tomasi).

    Two pictures are in memory at a time. Corners are looked for anew in each picture, so that no error adds up.
    """
    last: tuple[float, UInt8] | None = None
    for t_s, picture in pictures:
        if last is not None:
            yield _tracked(last, (t_s, picture))
        last = (t_s, picture)


def _tracked(first: tuple[float, UInt8], second: tuple[float, UInt8]) -> Tracks:
    height, width = first[1].shape
    nothing = np.empty((0, 2), np.float32)
    corners = cv2.goodFeaturesToTrack(first[1], MOST_CORNERS, CORNER_QUALITY, width * CORNER_DISTANCE)
    if corners is None:
        return Tracks(first[0], second[0], nothing, nothing, width)
    there, found, _ = cv2.calcOpticalFlowPyrLK(first[1], second[1], corners, np.empty(0), winSize=(15, 15))
    back, again, _ = cv2.calcOpticalFlowPyrLK(second[1], first[1], there, np.empty(0), winSize=(15, 15))
    away = np.linalg.norm((back - corners).reshape(-1, 2), axis=1)
    good = (found.ravel() == 1) & (again.ravel() == 1) & (away < SAME_PLACE_PX)
    middle = np.array([(width - 1) / 2, (height - 1) / 2], np.float32)
    before, after = ((points.reshape(-1, 2)[good] - middle) / width for points in (corners, there))
    return Tracks(first[0], second[0], before.astype(np.float32), after.astype(np.float32), width)


def image_turns(tracks: list[Tracks], lens: LensModel) -> ImageTurns:
    """Find the turn of the camera between each two pictures, by a lens."""
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
    """Rotation vector of the camera (3,) and which points follow it (n,).

    A point at rest obeys `before = R after` (directions). Gauss-Newton on the small turn that is left, with weights
    that let hands and food move (Geman-McClure).
    """
    before, after = lens.directions(pair.before), lens.directions(pair.after)
    pixel = 1.0 / (lens.focal * pair.width)
    total = np.eye(3)
    left = before - after
    weight = np.ones(len(before))
    for _ in range(TURN_STEPS):
        turned = after @ total.T
        left = before - turned
        away = np.linalg.norm(left, axis=1)
        sigma = max(1.4826 * float(np.median(away)), 0.05 * pixel)
        weight = 1.0 / (1.0 + (away / (SOFT_SIGMAS * sigma)) ** 2) ** 2
        # d(turn x turned) = left: normal equations of the cross product
        outer = np.einsum("n,ni,nj->ij", weight, turned, turned)
        normal = np.eye(3) * float((weight * (turned**2).sum(axis=1)).sum()) - outer
        step = np.linalg.solve(normal, (weight[:, None] * np.cross(turned, left)).sum(axis=0))
        total = np.asarray(cv2.Rodrigues(np.asarray(step, np.float64))[0], np.float64) @ total
        if float(np.abs(step).max()) < 1e-7:
            break
    return np.asarray(cv2.Rodrigues(total)[0], np.float64).ravel(), np.asarray(
        np.linalg.norm(left, axis=1) < LARGEST_RESIDUAL_PX * pixel
    )

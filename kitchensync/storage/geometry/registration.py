"""Depth in the view of another camera: points drawn with a z-buffer, gaps closed, occlusion tested.

Every depth pixel is one point; in a finer picture neighbouring points are a few pixels apart. They are drawn with a
z-buffer, and the gaps between them are closed by a grey opening (Matheron 1975; Serra 1982) of the distances: the
largest, over all windows around a pixel, of the least distance in the window. Windows are slightly wider than the
distance of points, so that each contains a point: background between points of a near surface is removed, silhouettes
do not move, and places covered by an empty window stay empty. On smooth surfaces the result is the mean of the points
in the window instead (normalized convolution, Knutsson and Westin 1993).
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from kitchensync.shell.array_types import Floats, Floats32, Mask, UInt16
from kitchensync.storage.geometry.camera_models import Camera, inside
from kitchensync.storage.geometry.clouds import MM_PER_M, DepthCamera, moved
from kitchensync.storage.geometry.reference_frames import Transform

_EMPTY = 65535  # largest uint16: any drawn distance is less
_WIDEST_WINDOW = 41
SLACK, SLACK_MM = 0.03, 15
"A point up to this part of its distance plus this length behind the surface belongs to it."


@dataclass(frozen=True)
class Surface:
    """The nearest surface in each direction of a camera."""

    distance_mm: UInt16
    "(rows, columns) along the camera's rays, 0 = unknown."
    cell_px: float
    "Width of a cell in pixels of the camera."

    def at(self, pixels: Floats) -> UInt16:
        """Return distances (n,) at pixels (n, 2) of the camera; 0 where unknown and outside of the picture."""
        rows, columns = self.distance_mm.shape
        with np.errstate(invalid="ignore"):
            u = np.floor((pixels[:, 0] + 0.5) / self.cell_px)
            v = np.floor((pixels[:, 1] + 0.5) / self.cell_px)
            ok = (u >= 0) & (v >= 0) & (u < columns) & (v < rows)
        at = np.where(ok, v, 0).astype(np.intp), np.where(ok, u, 0).astype(np.intp)
        return np.where(ok, self.distance_mm[at], 0).astype(np.uint16)

    def shows(self, pixels: Floats, distance_mm: Floats) -> Mask:
        """Return which points with pixels (n, 2) and distances (n,) are not hidden by a nearer surface."""
        surface = self.at(pixels).astype(np.float32)
        return np.asarray((surface == 0) | (distance_mm <= surface * (1 + SLACK) + SLACK_MM))


def registered(depth: DepthCamera, depth_mm: UInt16, target: Camera, target_from_depth: Transform) -> UInt16:
    """Draw a depth picture in the view of another camera: (height, width) uint16, mm along its rays, 0 = unknown."""
    points, at = depth.points(depth_mm)
    points = moved(target_from_depth, points)
    return surface_of(target, points, at, cell_px=1.0).distance_mm


def surface_of(
    camera: Camera, points: Floats32, order: npt.NDArray[np.intp], cell_px: float | None = None
) -> Surface:
    """Draw points (n, 3) in the camera's frame, metres, in the row-major order of a depth picture.

    `order` (n,) is the pixel of each point there, to find neighbours. The default `cell_px` is the distance of the
    points, which is enough for occlusion tests and fast for cameras of any size.
    """
    pixels = camera.project(points)
    apart_px = _apart_px(pixels, order)
    cell = cell_px or max(1.0, apart_px)
    nearest = drawn(camera, points, pixels, cell)
    side = int(np.clip(np.ceil(1.2 * (apart_px / cell)) + 1, 2, _WIDEST_WINDOW))
    window = (side, side)
    closed = np.asarray(cv2.morphologyEx(nearest, cv2.MORPH_OPEN, np.ones(window, np.uint8)), np.uint16)
    surface = closed.astype(np.float32)
    work = surface * np.float32(1 + SLACK)
    work += SLACK_MM
    belongs = nearest <= work
    belongs &= nearest != _EMPTY
    np.multiply(nearest, belongs, out=work, casting="unsafe")
    mean = np.asarray(cv2.blur(work, window), np.float32)
    count = np.asarray(cv2.boxFilter(belongs.view(np.uint8), cv2.CV_32F, window), np.float32)
    np.divide(mean, count, out=mean, where=count > 0)
    np.abs(np.subtract(mean, surface, out=work), out=work)
    surface *= np.float32(SLACK / 2)
    surface += SLACK_MM
    is_flat = work <= surface
    is_flat &= count > 0
    is_flat &= closed != _EMPTY
    closed[closed == _EMPTY] = 0
    np.copyto(closed, np.rint(mean, out=mean), where=is_flat, casting="unsafe")
    return Surface(closed, cell)


def drawn(camera: Camera, points: Floats32, pixels: Floats, cell_px: float = 1.0) -> UInt16:
    """Draw points (n, 3), metres, at pixels (n, 2) of a camera in a z-buffer.

    Returns distances (rows, columns) uint16, mm along the camera's rays; 65535 without a point.
    """
    x, y, z = points.T
    near_mm = np.sqrt(x * x + y * y + z * z) * np.float32(MM_PER_M)
    columns, rows = int(np.ceil(camera.width / cell_px)), int(np.ceil(camera.height / cell_px))
    is_inside = inside(camera, pixels) & (near_mm < _EMPTY)
    pixels, near_mm = (pixels[is_inside], near_mm[is_inside]) if not is_inside.all() else (pixels, near_mm)
    at = ((pixels + 0.5) / cell_px).astype(np.int32)
    nearest = np.full(rows * columns, _EMPTY, np.uint16)
    np.minimum.at(nearest, at[:, 1] * columns + at[:, 0], (near_mm + 0.5).astype(np.uint16))
    return nearest.reshape(rows, columns)


def colours(
    camera: Camera, points: Floats32, order: npt.NDArray[np.intp], picture: npt.NDArray[np.uint8]
) -> tuple[npt.NDArray[np.uint8], Mask]:
    """Return colours (n, 3) uint8 of points in a camera's picture (h, w, 3), and which points (n,) are visible.

    `points` and `order` are those of `surface_of`; the colour is that of the nearest pixel.
    """
    pixels = camera.project(points)
    visible = inside(camera, pixels)
    away_mm = np.linalg.norm(points[visible], axis=1) * MM_PER_M
    visible[visible] = surface_of(camera, points, order).shows(pixels[visible], away_mm)
    result = np.zeros((len(pixels), 3), np.uint8)
    at = np.rint(pixels[visible]).astype(np.intp)
    result[visible] = picture[at[:, 1], at[:, 0]]
    return result, visible


def _apart_px(pixels: Floats, order: npt.NDArray[np.intp]) -> float:
    """Return the distance of neighbours in a depth row, pixels: the 90th percentile of a sample."""
    next_to = np.flatnonzero(np.diff(order) == 1)[::17]
    if not len(next_to):
        return 1.0
    way = np.abs(pixels[next_to + 1] - pixels[next_to])
    way = np.maximum(way[:, 0], way[:, 1])
    way = way[np.isfinite(way)]
    return float(np.percentile(way, 90)) if len(way) else 1.0

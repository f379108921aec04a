"""Depth pictures as points, points in pictures: vectorized, one picture at a time, so that memory stays bounded.

The headset's depth is the distance along the ray in millimetres, 0 = invalid (hl2ss, section 5). Points are metres.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from calibration.cameras import Camera, LookUpTable, inside
from calibration.frames import Transform

Floats = npt.NDArray[np.float64]
Floats32 = npt.NDArray[np.float32]
U16 = npt.NDArray[np.uint16]
Mask = npt.NDArray[np.bool_]

MM_PER_M = 1000.0
AHAT_ALIAS_MM = 1055
"AHAT measures phase: depth beyond this starts again at 0."


class DepthCamera:
    """Turns depth pictures of one look-up-table camera into points; the rays are worked out once."""

    def __init__(self, camera: LookUpTable) -> None:
        self.camera = camera

    @cached_property
    def _rays(self) -> Floats32:
        """Unit rays (height * width, 3) of all pixels, metres a millimetre of depth; zero where there is none."""
        plane = self.camera.plane.reshape(-1, 2).astype(np.float64)
        rays = np.column_stack((plane, np.ones(len(plane))))
        rays /= np.linalg.norm(rays, axis=1, keepdims=True) * MM_PER_M
        rays[~self.camera.mappable.ravel()] = 0
        return rays.astype(np.float32)

    @cached_property
    def _known(self) -> Mask:
        return self.camera.mappable.ravel()

    @cached_property
    def _all_known(self) -> bool:
        return bool(self._known.all())

    def points(self, depth_mm: U16) -> tuple[Floats32, npt.NDArray[np.intp]]:
        """Return points (n, 3) float32 in the camera frame, metres, and the pixel (row * width + column) of each."""
        flat = depth_mm.ravel()
        at = np.flatnonzero(flat if self._all_known else (flat > 0) & self._known)
        points = self._rays * flat[:, None].astype(np.float32)
        return (points if len(at) == len(flat) else points.take(at, axis=0)), at

    def image(self, depth_mm: U16) -> Floats32:
        """Return points of all pixels (height, width, 3) float32, metres; zero where invalid."""
        height, width = depth_mm.shape
        return (self._rays * depth_mm.reshape(-1, 1).astype(np.float32)).reshape(height, width, 3)


def moved(target_from_source: Transform, points: npt.NDArray[np.floating]) -> Floats32:
    """Move points (n, 3) float32; single precision keeps 0.1 micrometre at arm's length."""
    turn = np.ascontiguousarray(target_from_source[:3, :3].T, np.float32)
    return points.astype(np.float32, copy=False) @ turn + target_from_source[:3, 3].astype(np.float32)


def colours(
    camera: Camera, points_in_camera: Floats32, picture: npt.NDArray[np.uint8]
) -> tuple[npt.NDArray[np.uint8], Mask]:
    """Return colours (n, 3) uint8 of points in a picture (h, w, 3), nearest pixel, and which points it shows.

    A point behind another one is not seen: of those within a pixel's reach only the nearest counts.
    """
    pixels = camera.project(points_in_camera)
    seen = inside(camera, pixels)
    seen[seen] = visible(camera, pixels[seen], np.linalg.norm(points_in_camera[seen], axis=1))
    result = np.zeros((len(pixels), 3), np.uint8)
    at = np.rint(pixels[seen]).astype(np.intp)
    result[seen] = picture[at[:, 1], at[:, 0]]
    return result, seen


def visible(
    camera: Camera, pixels: Floats, distance_m: npt.NDArray[np.floating], cell_px: float | None = None
) -> Mask:
    """Tell which points no nearer point hides: a z-buffer of cells, 3 % of the distance of slack.

    A cell defaults to what one in 240 columns covers, about the grain of a depth picture seen by a colour camera.
    """
    cell = cell_px or max(1.0, camera.width / 240)
    columns, rows = int(camera.width / cell) + 1, int(camera.height / cell) + 1
    at = (pixels[:, 1] / cell + 0.5 / cell).astype(np.intp) * columns + (
        pixels[:, 0] / cell + 0.5 / cell
    ).astype(np.intp)
    nearest = np.full(columns * (rows + 1), np.inf)
    np.minimum.at(nearest, at, distance_m)
    return np.asarray(distance_m <= nearest[at] * 1.03)


def registered(
    depth: DepthCamera,
    depth_mm: U16,
    target: Camera,
    target_from_depth: Transform,
    widest_gap_px: float = 40.0,
) -> U16:
    """Draw a depth picture as another camera sees it: (height, width) uint16, mm along its own rays, 0 = nothing.

    The depth picture is a mesh of little triangles between neighbouring pixels; those that span a step in depth are
    left out, the rest is filled, nearest first.
    """
    return _Drawing(target, widest_gap_px).draw(
        moved(target_from_depth, depth.image(depth_mm).reshape(-1, 3)), depth_mm
    )


class _Drawing:
    """Fills quads between neighbouring depth pixels, distances bilinear between their corners.

    Columns, rows and distances are kept as arrays of their own: NumPy is slow along axes of length 2 or 4.
    """

    def __init__(self, target: Camera, widest_gap_px: float) -> None:
        self._target, self._widest = target, widest_gap_px
        self._nearest = np.full(target.width * target.height, np.inf, np.float32)

    def draw(self, points: Floats32, depth_mm: U16) -> U16:
        """Return distances (height, width) of the mesh through points (n, 3), one a depth pixel, camera frame."""
        corners = [_corners(plane.reshape(depth_mm.shape)) for plane in self._planes(points, depth_mm)]
        (low_u, high_u), (low_v, high_v), (near, far) = (_limits(of) for of in corners)
        extent = np.maximum(high_u - low_u, high_v - low_v)
        ok = (near > 0) & (far < 1.08 * near + 10) & (extent < self._widest)  # NaN is never in
        ok &= (
            (high_u >= -0.5) & (high_v >= -0.5) & (low_u < self._target.width) & (low_v < self._target.height)
        )
        steps = np.ceil(extent[ok]).clip(1).astype(np.intp)
        kept = [[corner[ok] for corner in of] for of in corners]
        for count in np.unique(steps):
            wanted = steps == count
            self._sample([[corner[wanted] for corner in of] for of in kept], int(count))
        picture = np.where(np.isfinite(self._nearest), self._nearest, 0)
        return np.rint(picture).astype(np.uint16).reshape(self._target.height, self._target.width)

    def _planes(self, points: Floats32, depth_mm: U16) -> tuple[Floats32, Floats32, Floats32]:
        """Return column, row (pixels) and distance (mm) of every depth pixel; NaN where there is none."""
        valid = np.flatnonzero(depth_mm)
        seen = points[valid]
        pixels = self._target.project(seen)
        planes = np.full((3, len(points)), np.nan, np.float32)
        planes[0, valid], planes[1, valid] = pixels[:, 0], pixels[:, 1]
        planes[2, valid] = np.sqrt(np.einsum("ij,ij->i", seen, seen)) * np.float32(MM_PER_M)
        return planes[0], planes[1], planes[2]

    def _sample(self, corners: list[list[Floats32]], count: int) -> None:
        """Lower the picture by `count` x `count` samples of each quad; far edges are left to the next quads."""
        width, height = self._target.width, self._target.height
        for down in np.linspace(0, 1, count, endpoint=False, dtype=np.float32):
            left = [upper * (1 - down) + lower * down for upper, _, _, lower in corners]
            right = [upper * (1 - down) + lower * down for _, upper, lower, _ in corners]
            for across in np.linspace(0, 1, count, endpoint=False, dtype=np.float32):
                u, v, away = (a * (1 - across) + b * across for a, b in zip(left, right, strict=True))
                columns, rows = np.rint(u).astype(np.int32), np.rint(v).astype(np.int32)
                ok = (columns >= 0) & (rows >= 0) & (columns < width) & (rows < height)
                np.minimum.at(self._nearest, (rows * width + columns)[ok], away[ok])


def _corners(plane: Floats32) -> list[Floats32]:
    """Return the four corners of every quad of a grid, in turn."""
    corners = (plane[:-1, :-1], plane[:-1, 1:], plane[1:, 1:], plane[1:, :-1])
    return [np.ascontiguousarray(corner).ravel() for corner in corners]


def _limits(corners: list[Floats32]) -> tuple[Floats32, Floats32]:
    """Return least and greatest of four arrays; NaN where one is."""
    one, two, three, four = corners
    return (
        np.minimum(np.minimum(one, two), np.minimum(three, four)),
        np.maximum(np.maximum(one, two), np.maximum(three, four)),
    )


@dataclass(frozen=True)
class Unwrapped:
    """AHAT depth with the doubt about its wrapping."""

    depth_mm: U16
    "As sent; 0 where it cannot be trusted."
    wrapped: Mask
    "(h, w) pixels that are farther than the sensor can count."


def without_wrapped(depth_mm: U16, brightness: U16) -> Unwrapped:
    """Blank out AHAT pixels that wrapped: their depth says near while their brightness says far.

    Brightness of a surface falls with the square of the distance, so `depth^2 * brightness` is its reflectance. A
    pixel
    that wrapped is about a whole range farther than it says: its reflectance comes out at least seven times too
    small (1688 mm seen as 633 mm). Skin, wood and cloth differ by less from what is bright (factor of `DARKEST`).
    """
    depth = depth_mm.astype(np.float64)
    reflectance = depth**2 * brightness
    valid = depth_mm > 0
    if not valid.any():
        return Unwrapped(depth_mm, np.zeros_like(valid))
    bright = float(np.percentile(reflectance[valid], 90))
    wrapped = valid & (reflectance < bright / DARKEST) & (depth < AHAT_ALIAS_MM * 0.6)
    return Unwrapped(np.where(wrapped, 0, depth_mm).astype(np.uint16), wrapped)


DARKEST = 6.0
"What is darker than the 90th percentile by this factor is taken for far; a black thing that is near goes with it."

"""The headset's grey and depth cameras: a table with a ray for every pixel, as downloaded.

Conventions are those of `kitchensync.storage.geometry.camera_models`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from kitchensync.storage.geometry.camera_models import Floats, Mask, Reals, unit, unit_plane


@dataclass(frozen=True, eq=False)
class LookUpTable:
    """A Research Mode camera: the ray of every pixel, and the inverse map, as downloaded from the headset.

    `plane` (height, width, 2) float32 is the ray at z = 1 of each integer pixel, (0, 0) without a ray; `source` (h,
    w, 2) float32 is the source pixel of each pixel of an undistorted picture, -1 without one, and `pinhole` are fx,
    fy, cx, cy of that picture.
    """

    plane: npt.NDArray[np.float32]
    source: npt.NDArray[np.float32]
    pinhole: tuple[float, float, float, float]

    @property
    def width(self) -> int:
        """Columns of the picture as sent (unrotated)."""
        return int(self.plane.shape[1])

    @property
    def height(self) -> int:
        """Rows of the picture as sent (unrotated)."""
        return int(self.plane.shape[0])

    def project(self, points: npt.ArrayLike) -> Floats:
        """Return pixels (n, 2) of points (n, 3); NaN outside the undistorted picture."""
        x, y, seen = unit_plane(points)
        fx, fy, cx, cy = self.pinhole
        return _interpolated(self.source, fx * x + cx, fy * y + cy, seen, self._has_source)

    def rays(self, pixels: npt.ArrayLike) -> Floats:
        """Return unit rays (n, 3) of pixels (n, 2); NaN without a ray in the table."""
        at = np.asarray(pixels, np.float64)
        known = np.ones(len(at), np.bool_)
        plane = _interpolated(self.plane, at[:, 0], at[:, 1], known, self.mappable)
        return unit(np.column_stack((plane, np.ones(len(plane)))))

    @cached_property
    def mappable(self) -> Mask:
        """Which pixels (height, width) have a ray: not (0, 0), except at the optical axis."""
        known = np.any(self.plane != 0, axis=-1)
        for row, column in np.argwhere(~known[1:-1, 1:-1]) + 1:
            around = self.plane[[row - 1, row + 1, row, row], [column, column, column - 1, column + 1]]
            lengths = np.linalg.norm(around, axis=1)
            if lengths.min() > 0 and np.linalg.norm(around.sum(0)) < lengths.min():
                known[row, column] = True
        return known

    @cached_property
    def _has_source(self) -> Mask:
        return np.all(self.source >= 0, axis=-1)


def _interpolated(
    table: npt.NDArray[np.float32], columns: Reals, rows: Reals, usable: Mask, has_value: Mask
) -> Floats:
    """Interpolate in a table (h, w, 2); NaN if one of the four neighbours has no value."""
    height, width = has_value.shape
    ok = usable & (columns >= 0) & (rows >= 0) & (columns <= width - 1) & (rows <= height - 1)
    columns, rows = np.where(ok, columns, 0.0), np.where(ok, rows, 0.0)
    left, top = np.minimum(columns.astype(int), width - 2), np.minimum(rows.astype(int), height - 2)
    right_part, low_part = (columns - left)[:, None], (rows - top)[:, None]
    for dy in (0, 1):
        for dx in (0, 1):
            ok &= has_value[top + dy, left + dx]
    upper = table[top, left] * (1 - right_part) + table[top, left + 1] * right_part
    lower = table[top + 1, left] * (1 - right_part) + table[top + 1, left + 1] * right_part
    return np.where(ok[:, None], upper * (1 - low_part) + lower * low_part, np.nan)

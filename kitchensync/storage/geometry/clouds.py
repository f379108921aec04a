"""Convert depth pictures to points and outlines, vectorized and with bounded memory, one picture at a time.

The headset's depth is the distance along the ray in millimetres, 0 = invalid (hl2ss, section 5). Points are in
metres.
"""

from __future__ import annotations

from functools import cached_property

import cv2
import numpy as np
import numpy.typing as npt

from kitchensync.shell.array_types import Floats, Floats32, Mask, UInt16
from kitchensync.storage.geometry.look_up_table import LookUpTable
from kitchensync.storage.geometry.reference_frames import Transform

MM_PER_M = 1000.0


class DepthCamera:
    """Converts depth pictures of one look-up-table camera to points; the rays are computed once."""

    def __init__(self, camera: LookUpTable) -> None:
        self.camera = camera
        self._known: Mask | None = None if camera.mappable.all() else camera.mappable.ravel()

    @cached_property
    def _rays(self) -> Floats32:
        """Rays (height * width, 3) of all pixels, metres per millimetre of depth; zero without a ray."""
        plane = self.camera.plane.reshape(-1, 2).astype(np.float64)
        rays = np.column_stack((plane, np.ones(len(plane))))
        rays /= np.linalg.norm(rays, axis=1, keepdims=True) * MM_PER_M
        rays[~self.camera.mappable.ravel()] = 0
        return rays.astype(np.float32)

    def points(self, depth_mm: UInt16) -> tuple[Floats32, npt.NDArray[np.intp]]:
        """Return points (n, 3) float32 in the camera frame, metres, and the pixel (row * width + column) of each."""
        flat = depth_mm.ravel()
        at = np.flatnonzero(flat if self._known is None else (flat > 0) & self._known)
        points = self._rays * flat[:, None].astype(np.float32)
        return (points if len(at) == len(flat) else points.take(at, axis=0)), at

    def image(self, depth_mm: UInt16) -> Floats32:
        """Return points of all pixels (height, width, 3) float32, metres; zero where invalid."""
        height, width = depth_mm.shape
        return (self._rays * depth_mm.reshape(-1, 1).astype(np.float32)).reshape(height, width, 3)


def moved(target_from_source: Transform, points: npt.NDArray[np.floating]) -> Floats32:
    """Transform points (n, 3) float32; single precision resolves 0.1 micrometre at arm's length.

    It uses OpenCV, as the threads of NumPy's BLAS cost more than a product with a 3 x 3 matrix.
    """
    if not len(points):
        return np.empty((0, 3), np.float32)
    points = np.ascontiguousarray(points, np.float32)
    target_points = cv2.transform(points[:, None], target_from_source[:3].astype(np.float32))
    return np.asarray(target_points, np.float32).reshape(-1, 3)


STEP, STEP_MM = 0.08, 40.0
"An edge is a pixel at least this part plus this length behind its neighbour; only very slanted walls rise so fast."


def depth_edges(table: LookUpTable, depth_mm: UInt16) -> Floats:
    """Return the outlines (n, 2, 3) in a depth picture: start and end of each segment, metres in the camera's frame.

    A segment has the length of a pixel's side. There are no outlines at pixels without depth.
    """
    depth = depth_mm.astype(np.float64)
    pieces = []
    for axis in (0, 1):
        first, second = (depth[:-1], depth[1:]) if axis == 0 else (depth[:, :-1], depth[:, 1:])
        near, far = np.minimum(first, second), np.maximum(first, second)
        rows, columns = np.nonzero((near > 0) & (far > near * (1 + STEP) + STEP_MM))
        middle = np.stack((columns, rows), axis=-1).astype(float)
        middle[:, 1 - axis] += 0.5  # between the two pixels
        along = np.array([0.5, 0.0]) if axis == 0 else np.array([0.0, 0.5])
        ends = np.stack((middle - along, middle + along), axis=1)
        rays = table.rays(ends.reshape(-1, 2)).reshape(-1, 2, 3)
        pieces.append(rays * (near[rows, columns] / MM_PER_M)[:, None, None])
    outlines = np.concatenate(pieces)
    return outlines[np.isfinite(outlines).all(axis=(1, 2))]

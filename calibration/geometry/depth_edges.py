"""Where depth steps: the outlines of things, as short lines in space that any camera can draw.

An outline lies between a near and a far depth pixel. It is put between both, at the distance of the near one: on the
rim of the thing, as exactly as the grain of the depth picture allows.
"""

from __future__ import annotations

import numpy as np

from calibration.geometry.clouds import MM_PER_M
from calibration.geometry.look_up_table import LookUpTable
from sensors.array_types import Floats, UInt16

STEP, STEP_MM = 0.08, 40.0
"A step is a far pixel this part (and this much) behind a near one; a wall must be very slanted to rise so fast."


def depth_edges(table: LookUpTable, depth_mm: UInt16) -> Floats:
    """Return the outlines (n, 2, 3) in a depth picture: begin and end of each piece, metres in its camera's frame.

    A piece is as long as the side of one pixel. Pixels without depth bound nothing.
    """
    depth = depth_mm.astype(np.float64)
    pieces = []
    for axis in (0, 1):
        one, other = (depth[:-1], depth[1:]) if axis == 0 else (depth[:, :-1], depth[:, 1:])
        near, far = np.minimum(one, other), np.maximum(one, other)
        rows, columns = np.nonzero((near > 0) & (far > near * (1 + STEP) + STEP_MM))
        middle = np.stack((columns, rows), axis=-1).astype(float)
        middle[:, 1 - axis] += 0.5  # between the two pixels
        along = np.array([0.5, 0.0]) if axis == 0 else np.array([0.0, 0.5])
        ends = np.stack((middle - along, middle + along), axis=1)
        rays = table.rays(ends.reshape(-1, 2)).reshape(-1, 2, 3)
        pieces.append(rays * (near[rows, columns] / MM_PER_M)[:, None, None])
    found = np.concatenate(pieces)
    return found[np.isfinite(found).all(axis=(1, 2))]

"""Frames of reference: the headset's row-vector matrices become column-vector transforms once, at the border.

A transform `b_from_a` is (..., 4, 4) float64, column-vector convention: `p_b = b_from_a @ p_a`, metres. The world is
right-handed: x right, y up, z towards the viewer at the start of the headset's app.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kitchensync.storage.geometry.errors import NotTracked

Transform = npt.NDArray[np.float64]

OPENCV_FROM_PV_AXES: Transform = np.diag([1.0, -1.0, -1.0, 1.0])
"""The front camera looks along -z with y up; OpenCV cameras look along +z with y down. Its own inverse."""


def tracked(wire_poses: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Return which poses (..., 4, 4) the headset tracked: an untracked one is all zero, its last element too."""
    return np.asarray(wire_poses)[..., 3, 3] != 0


def world_from_local(wire_poses: npt.ArrayLike) -> Transform:
    """Convert poses as sent to transforms.

    `wire_poses` is (..., 4, 4), row-vector convention (`p_world = p_local @ M`, translation in the fourth row,
    metres), local being the sensor's node. Raises NotTracked when one of them is all zero.
    """
    poses = np.asarray(wire_poses, np.float64)
    lost = int(np.count_nonzero(~tracked(poses)))
    if lost:
        raise NotTracked(lost)
    return np.swapaxes(poses, -1, -2)


def inverse(b_from_a: npt.ArrayLike) -> Transform:
    """Invert rigid transforms (..., 4, 4): rotation transposed, translation turned back."""
    transform = np.asarray(b_from_a, np.float64)
    rotation = np.swapaxes(transform[..., :3, :3], -1, -2)
    result = np.zeros_like(transform)
    result[..., :3, :3] = rotation
    result[..., :3, 3] = -np.einsum("...ij,...j->...i", rotation, transform[..., :3, 3])
    result[..., 3, 3] = 1.0
    return result


def opencv_camera_from_world(wire_poses: npt.ArrayLike) -> Transform:
    """Convert poses of the front camera as sent to OpenCV extrinsics (..., 4, 4), for `cv2.projectPoints`."""
    return OPENCV_FROM_PV_AXES @ inverse(world_from_local(wire_poses))


def transform_points(b_from_a: npt.ArrayLike, points: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Move points (n, 3), metres, from frame a to frame b."""
    transform = np.asarray(b_from_a, np.float64)
    return np.asarray(points, np.float64) @ transform[:3, :3].T + transform[:3, 3]


def rig_from_sensor(wire_extrinsics: npt.ArrayLike) -> Transform:
    """Convert constants as downloaded (rig to sensor, row-vector 4x4) to the rig from the sensor, column vectors."""
    return inverse(np.swapaxes(np.asarray(wire_extrinsics, np.float64).reshape(4, 4), 0, 1))

"""Transforms compared with SciPy's rotations and with projections by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from kitchensync.storage.geometry.errors import NotTracked
from kitchensync.storage.geometry.reference_frames import (
    inverse,
    opencv_camera_from_world,
    rig_from_sensor,
    tracked,
    transform_points,
    world_from_local,
)

angle = st.floats(-3, 3)
metres = st.floats(-5, 5)


def wire_pose(rotation: Rotation, position: list[float]) -> np.ndarray:
    """Return a pose as sent by the headset: for row vectors, translation in the last row."""
    pose = np.eye(4, dtype=np.float32)
    pose[:3, :3] = rotation.as_matrix().T
    pose[3, :3] = position
    return pose


@given(
    angle, angle, angle, st.lists(metres, min_size=3, max_size=3), st.lists(metres, min_size=3, max_size=3)
)
def test_a_point_moves_as_the_row_vector_convention_says(a, b, c, position, point):
    pose = wire_pose(Rotation.from_euler("xyz", [a, b, c]), position)
    by_rows = np.append(point, 1.0) @ pose.astype(np.float64)
    moved = transform_points(world_from_local(pose), [point])
    assert np.allclose(moved[0], by_rows[:3], atol=1e-9)
    back = transform_points(inverse(world_from_local(pose)), moved)
    assert np.allclose(back[0], point, atol=1e-4)


def test_a_point_ahead_and_above_lands_in_the_upper_middle_of_an_opencv_picture():
    camera = wire_pose(Rotation.identity(), [0.0, 1.5, 0.0])
    x, y, z = transform_points(opencv_camera_from_world(camera), [[0.0, 2.0, -2.0]])[0]
    assert z == pytest.approx(2.0)
    assert (x, y) == (pytest.approx(0.0), pytest.approx(-0.5))


def test_poses_of_zeros_are_untracked_and_refused():
    poses = np.stack([wire_pose(Rotation.identity(), [0, 0, 0]), np.zeros((4, 4), np.float32)])
    assert tracked(poses).tolist() == [True, False]
    with pytest.raises(NotTracked, match="1 poses are untracked"):
        world_from_local(poses)


def turned(vector: list[float], shift: list[float]) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, :3] = Rotation.from_rotvec(vector).as_matrix()
    pose[:3, 3] = shift
    return pose


def test_downloaded_extrinsics_are_converted_once():
    pose = turned([0.3, -0.2, 0.1], [0.05, 0.02, -0.01])
    wire = pose.T.astype(np.float32)  # rig to sensor, row vectors
    assert np.allclose(rig_from_sensor(wire), np.linalg.inv(pose), atol=1e-6)

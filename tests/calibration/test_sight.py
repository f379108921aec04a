"""Visibility of points: in the image, hidden, outside of it, behind the camera; and where a gaze meets a surface."""

from __future__ import annotations

import numpy as np
import pytest
from tables import look_up_table

from kitchensync.storage.geometry.camera_models import Pinhole
from kitchensync.storage.geometry.registration import Surface
from kitchensync.storage.geometry.visibility import JointVisibility, meets, seen_by
from kitchensync.virtual_kitchen.headset.cameras import LONGTHROW

CAMERA = Pinhole(640, 360, 500, 500, 319.5, 179.5)


def wall_with_a_post() -> Surface:
    """Return a wall at 2 m along every ray, a post at 1 m in columns 300 to 339, and no depth in the last row."""
    distance = np.full((360, 640), 2000, np.uint16)
    distance[:, 300:340] = 1000
    distance[-1] = 0
    return Surface(distance, 1.0)


def along(u: float, v: float, distance_m: float) -> np.ndarray:
    ray = CAMERA.rays([[u, v]])[0]
    return ray * distance_m


def test_every_kind_of_visibility_is_distinguished():
    points = np.stack([
        along(100, 100, 1.9),  # before the wall
        along(100, 100, 2.2),  # behind it
        along(320, 100, 1.5),  # behind the post
        along(320, 100, 0.9),  # before the post
        along(320, 359, 3.0),  # without depth
        along(900, 100, 1.0),  # outside the image
        [0.1, 0.1, -1.0],
        [np.nan, 0.0, 1.0],
    ])  # fmt: skip
    pose = np.eye(4)
    pose[:3, 3] = [0.4, -0.2, 1.0]
    camera_from_world = np.linalg.inv(pose)
    in_world = points @ pose[:3, :3].T + pose[:3, 3]
    joints = seen_by(CAMERA, camera_from_world, in_world, wall_with_a_post())
    assert [JointVisibility(s).name for s in joints.sight] == [
        "VISIBLE", "HIDDEN", "HIDDEN", "VISIBLE", "VISIBLE", "OUTSIDE", "BEHIND", "UNKNOWN",
    ]  # fmt: skip
    assert joints.pixels[0] == pytest.approx([100, 100])
    assert joints.distance_m[:2] == pytest.approx([1.9, 2.2])
    assert np.isnan(joints.pixels[-1]).all()


def test_a_joint_inside_its_finger_is_visible():
    joint = along(320, 100, 1.055)[None]
    assert seen_by(CAMERA, np.eye(4), joint, wall_with_a_post()).sight[0] == JointVisibility.HIDDEN
    assert seen_by(CAMERA, np.eye(4), joint, wall_with_a_post(), 0.03).sight[0] == JointVisibility.VISIBLE


def test_without_depth_nothing_is_hidden():
    assert seen_by(CAMERA, np.eye(4), along(320, 100, 9.0)[None]).visible.all()


def depth_of_wall(distance_m: float) -> tuple[object, np.ndarray]:
    table = look_up_table(LONGTHROW)
    along_ray = np.sqrt(1 + np.sum(table.plane.astype(float) ** 2, -1))
    return table, np.rint(1000 * distance_m * along_ray).astype(np.uint16)


def test_a_gaze_meets_a_wall_where_it_stands():
    table, depth = depth_of_wall(1.8)
    origin, direction = np.array([0.05, -0.03, -0.02]), np.array([0.1, 0.2, 1.0])
    direction /= np.linalg.norm(direction)
    distance_m = meets(table, np.eye(4), Surface(depth, 1.0), origin, direction)
    assert distance_m == pytest.approx((1.8 + 0.02) / direction[2], abs=4e-3)


def test_a_gaze_that_leaves_the_picture_or_passes_behind_something_meets_nothing():
    table, depth = depth_of_wall(1.8)
    surface = Surface(depth, 1.0)
    assert meets(table, np.eye(4), surface, np.zeros(3), np.array([0.0, 0.0, -1.0])) is None
    assert meets(table, np.eye(4), surface, np.zeros(3), np.array([0.95, 0.0, 0.31])) is None
    post = depth.copy()
    post[:, 200:] = np.minimum(post[:, 200:], 500)
    aside = np.array([0.8, 0.0, 0.25])  # begins behind the post's plane, off the image centre
    assert meets(table, np.eye(4), Surface(post, 1.0), aside, np.array([-0.3, 0.0, 0.954])) is None

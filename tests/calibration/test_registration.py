"""Depth registered to another camera compared with the true depth of a furnished room."""

from __future__ import annotations

import furnished as room
import numpy as np
import pytest
from tables import look_up_table

from kitchensync.storage.geometry.camera_models import Fisheye, Pinhole
from kitchensync.storage.geometry.clouds import DepthCamera, moved
from kitchensync.storage.geometry.registration import colours, registered
from kitchensync.virtual_kitchen.headset.cameras import AHAT, LONGTHROW
from kitchensync.virtual_kitchen.world.optics import Optics

pytestmark = pytest.mark.slow

TARGETS = [
    (
        Pinhole(640, 360, 505, 505, 319.5, 179.5),
        Optics("pinhole", 640, 360, 505, 505, 319.5, 179.5, (0.0,) * 5),
    ),
    (
        Fisheye(960, 540, 440, 439, 478, 272, 0.03, -0.01, 0.004, -0.001),
        Optics("fisheye", 960, 540, 440, 439, 478, 272, (0.03, -0.01, 0.004, -0.001)),
    ),
]


def depth_pose() -> np.ndarray:
    """Return world from a depth camera that looks down at the boxes on the counter."""
    pitch = np.radians(-28)
    pose = np.eye(4)
    turn = np.array([[1, 0, 0], [0, np.cos(pitch), -np.sin(pitch)], [0, np.sin(pitch), np.cos(pitch)]])
    pose[:3, :3] = turn @ np.diag([1.0, -1, -1])
    pose[:3, 3] = room.VIEWING_POINT + np.array([0.1, 0.05, 0.25])
    return pose


def depth_of(table) -> np.ndarray:
    """Return the radial depth of the room in millimetres."""
    rays = np.concatenate((table.plane.astype(float), np.ones((table.height, table.width, 1))), -1)
    return np.rint(1e3 * room.traced(depth_pose(), rays)).astype(np.uint16)


def target_from_depth() -> np.ndarray:
    shift = np.eye(4)
    shift[:3, 3] = [0.05, 0.03, -0.01]
    return shift


def in_both(rays: np.ndarray, away_m: np.ndarray, table, depth: np.ndarray) -> np.ndarray:
    """Return by plain arithmetic which target pixels (h, w) show points visible to the depth camera too."""
    points = (rays / np.linalg.norm(rays, axis=-1, keepdims=True) * away_m[..., None]).reshape(-1, 3)
    in_depth = points - target_from_depth()[:3, 3]
    focal, (cx, cy) = table.pinhole[0], table.pinhole[2:]
    u, v = np.rint(in_depth[:, :2] / in_depth[:, 2:] * focal + [cx, cy]).astype(int).T
    inside = (in_depth[:, 2] > 0) & (u > 2) & (v > 2) & (u < table.width - 3) & (v < table.height - 3)
    depth_mm = np.where(inside, depth[v * inside, u * inside], 0)
    return (np.abs(1e3 * np.linalg.norm(in_depth, axis=1) - depth_mm) < 20).reshape(away_m.shape)


@pytest.mark.parametrize("model", [LONGTHROW, AHAT], ids=lambda model: model.name)
@pytest.mark.parametrize(("target", "optics"), TARGETS, ids=["pinhole", "fisheye"])
def test_registered_depth_is_that_of_the_other_camera(model, target, optics):
    table = look_up_table(model)
    depth, rays = depth_of(table), optics.ray_table()
    image_mm = registered(DepthCamera(table), depth, target, target_from_depth()).astype(float)
    true = 1e3 * room.traced(depth_pose() @ np.linalg.inv(target_from_depth()), rays)
    there = image_mm > 0
    assert there[in_both(rays, true / 1e3, table, depth)].mean() > 0.99
    off = np.abs(image_mm - true)[there]
    assert np.median(off) < 4
    assert np.percentile(off, 90) < 15
    assert np.mean(off < 40) > 0.98, "silhouettes are in the right place"


def test_points_hidden_by_a_box_do_not_get_its_colour():
    table = look_up_table(LONGTHROW)
    target, optics = TARGETS[0]
    points, order = DepthCamera(table).points(depth_of(table))
    far_aside = np.eye(4)
    far_aside[:3, 3] = [0.3, 0.0, 0.0]
    in_target = moved(far_aside, points)
    away = room.traced(depth_pose() @ np.linalg.inv(far_aside), optics.ray_table())
    picture = np.zeros((360, 640, 3), np.uint8)
    _, coloured = colours(target, in_target, order, picture)
    pixels = np.rint(target.project(in_target)).astype(int)
    inside = (pixels[:, 0] >= 2) & (pixels[:, 1] >= 2) & (pixels[:, 0] < 638) & (pixels[:, 1] < 358)
    truly = np.zeros(len(points))
    truly[inside] = away[pixels[inside, 1], pixels[inside, 0]]
    hidden = inside & (np.linalg.norm(in_target, axis=1) > truly + 0.1)
    shown = inside & (np.linalg.norm(in_target, axis=1) < truly + 0.02)
    assert hidden.sum() > 500
    assert coloured[hidden].mean() < 0.05
    assert coloured[shown].mean() > 0.97


def test_a_camera_without_depth_in_view_gets_an_empty_image():
    table = look_up_table(LONGTHROW)
    turned = np.diag([-1.0, 1.0, -1.0, 1.0])
    assert not registered(DepthCamera(table), depth_of(table), TARGETS[0][0], turned).any()
    nothing = np.zeros((table.height, table.width), np.uint16)
    assert not registered(DepthCamera(table), nothing, TARGETS[0][0], np.eye(4)).any()

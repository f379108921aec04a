"""Points from depth compared with plain arithmetic, and registered depth with a known plane."""

from __future__ import annotations

import numpy as np
import pytest
from tables import look_up_table

from kitchensync.storage.geometry.camera_models import Pinhole, inside
from kitchensync.storage.geometry.clouds import DepthCamera, moved
from kitchensync.storage.geometry.look_up_table import LookUpTable
from kitchensync.storage.geometry.registration import colours, registered
from kitchensync.virtual_kitchen.headset.cameras import LONGTHROW


def depth_camera() -> LookUpTable:
    """Return the virtual headset's long-throw depth camera."""
    return look_up_table(LONGTHROW)


def wall(camera: LookUpTable, distance_m: float) -> np.ndarray:
    """Return the radial depth in millimetres of a wall perpendicular to the optical axis."""
    return np.rint(1000 * distance_m * np.sqrt(1 + np.sum(camera.plane.astype(float) ** 2, -1))).astype(
        np.uint16
    )


def test_points_are_the_ray_times_the_radial_depth():
    camera = depth_camera()
    rng = np.random.default_rng(1)
    depth = rng.integers(0, 4000, (288, 320)).astype(np.uint16)
    depth[rng.random(depth.shape) < 0.3] = 0
    points, at = DepthCamera(camera).points(depth)
    assert np.array_equal(at, np.flatnonzero(depth))
    for index in rng.integers(0, len(at), 50):
        row, column = divmod(int(at[index]), 320)
        x, y = camera.plane[row, column].astype(float)
        expected = np.array([x, y, 1]) * depth[row, column] / (1000 * np.sqrt(x * x + y * y + 1))
        assert points[index] == pytest.approx(expected, abs=1e-6)


def test_a_wall_is_flat():
    points, _ = DepthCamera(depth_camera()).points(wall(depth_camera(), 2.0))
    assert np.abs(points[:, 2] - 2.0).max() < 1e-3


def test_registration_puts_a_wall_where_the_other_camera_sees_it():
    camera = depth_camera()
    target = Pinhole(640, 360, 500, 500, 319.5, 179.5)
    shift = np.eye(4)
    shift[:3, 3] = [0.06, -0.02, 0.01]
    picture = registered(DepthCamera(camera), wall(camera, 1.5), target, shift)
    v, u = np.mgrid[0:360, 0:640]
    rays = np.stack(((u - 319.5) / 500, (v - 179.5) / 500, np.ones(u.shape)), -1)
    expected = 1510 * np.linalg.norm(rays, axis=-1)
    assert np.mean(picture[40:320, 60:580] > 0) == 1.0, "no holes"
    assert np.abs(picture[40:320, 60:580] - expected[40:320, 60:580]).max() < 6


def test_points_in_front_hide_those_behind():
    camera = depth_camera()
    target = Pinhole(320, 180, 250, 250, 159.5, 89.5)
    depth = wall(camera, 2.0)
    near = wall(camera, 1.0)
    depth[100:180, 120:200] = near[100:180, 120:200]
    points, order = DepthCamera(camera).points(depth)
    aside = np.eye(4)
    aside[0, 3] = 0.25
    in_target = moved(aside, points)
    picture = np.zeros((180, 320, 3), np.uint8)
    _, coloured = colours(target, in_target, order, picture)
    behind = in_target[:, 2] > 1.5
    pixels = target.project(in_target)
    near_pixels = pixels[~behind & inside(target, pixels)]
    low, high = near_pixels.min(0) + 6, near_pixels.max(0) - 6
    hidden = behind & np.all((pixels > low) & (pixels < high), axis=1)
    assert hidden.sum() > 100
    assert not coloured[hidden].any()
    open_wall = behind & inside(target, pixels) & (pixels[:, 0] < near_pixels[:, 0].min() - 8)
    assert coloured[open_wall].mean() > 0.95


def test_colours_come_from_the_pixel_of_a_point():
    camera = depth_camera()
    target = Pinhole(320, 180, 250, 250, 159.5, 89.5)
    v, u = np.mgrid[0:180, 0:320]
    picture = np.stack((u % 256, v, u // 256), -1).astype(np.uint8)
    points, order = DepthCamera(camera).points(wall(camera, 1.2))
    shades, coloured = colours(target, points, order, picture)
    at = np.rint(target.project(points[coloured])).astype(int)
    assert np.array_equal(shades[coloured][:, 0] + 256 * shades[coloured][:, 2].astype(int), at[:, 0])
    assert np.array_equal(shades[coloured][:, 1], at[:, 1])

"""The scene turns with the head, and the truth's clock map is the composition of the devices' clocks."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from kitchensync.virtual_kitchen.world.clocks import camera_clock, headset_clock, media_map
from kitchensync.virtual_kitchen.world.scene import Scene
from kitchensync.virtual_kitchen.world.seeds import camera_seed

FOCAL_PX = 505.0


@pytest.fixture(scope="module")
def scene() -> Scene:
    return Scene(1)


def _view(scene: Scene, turn: Rotation) -> np.ndarray:
    view = scene.render(turn.as_quat()[[3, 0, 1, 2]], 640, 360, FOCAL_PX)
    return cv2.cvtColor(view, cv2.COLOR_RGB2GRAY).astype(np.float32)


@pytest.mark.slow
@pytest.mark.parametrize(("pitch", "yaw"), [(-30.0, 0.0), (0.0, 170.0), (-10.0, -178.0)])
def test_a_turned_camera_sees_the_rotated_picture(scene: Scene, pitch: float, yaw: float) -> None:
    before = Rotation.from_euler("YX", [yaw, pitch], degrees=True)
    turn = Rotation.from_rotvec(np.radians([1.5, 2.0, 3.0]))  # in the head frame
    camera = np.array([[FOCAL_PX, 0, 319.5], [0, FOCAL_PX, 179.5], [0, 0, 1]])
    flip = np.diag([1.0, -1.0, -1.0])  # x right, y down, z forward
    homography = camera @ flip @ turn.as_matrix().T @ flip @ np.linalg.inv(camera)
    expected = cv2.warpPerspective(_view(scene, before), homography, (640, 360))
    inside = cv2.erode(
        cv2.warpPerspective(np.ones((360, 640), np.float32), homography, (640, 360)), np.ones((9, 9))
    )
    error = np.abs(expected - _view(scene, before * turn))[inside > 0.99]
    assert error.mean() < 2.0
    assert _view(scene, before).std() > 10


@pytest.mark.slow
def test_looking_straight_down_or_up_is_no_exception(scene: Scene) -> None:
    for pitch in (-90.0, 90.0):
        assert _view(scene, Rotation.from_euler("X", pitch, degrees=True)).shape == (360, 640)


@pytest.mark.slow
def test_same_seed_same_picture(scene: Scene) -> None:
    upright = np.array([1.0, 0, 0, 0])
    assert np.array_equal(
        scene.render_i420(upright, 424, 240, 300.0), Scene(1).render_i420(upright, 424, 240, 300.0)
    )


def test_media_map_is_camera_time_on_the_headset_clock() -> None:
    headset, camera = headset_clock(42), camera_clock(42)
    truth = media_map(headset, camera, start_world_s=3.25)
    for media_s in (0.0, 10.0, 3600.0):
        exact = headset.ticks_at(camera.world_s_at(media_s, 3.25))
        told = truth.epoch_ticks + 1e7 * (media_s + truth.tau0_s + truth.drift_ppm * 1e-6 * media_s)
        assert told == pytest.approx(exact, abs=2)
    assert headset.world_s_at(headset.ticks_at(12.5)) == pytest.approx(12.5, abs=1e-6)


def test_the_first_camera_is_the_one_of_the_seed() -> None:
    seeds = [camera_seed(42, name) for name in ("", 0, 1, 2, 3)]
    assert seeds[:2] == [42, 42]
    assert len(set(seeds)) == 4

"""Mounts from boards and from motion compared with the true ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from kitchensync.calibration.estimate.board import Board, BoardDetection
from kitchensync.calibration.estimate.intrinsics import Intrinsics
from kitchensync.calibration.estimate.joint_cameras import BoardPair, from_board
from kitchensync.calibration.estimate.lens_quality import DETECTOR_PX, detector_error
from kitchensync.calibration.estimate.motion import check_mount, rotation_from_motion
from kitchensync.storage.geometry.camera_models import Fisheye, Pinhole
from kitchensync.storage.geometry.errors import Refused
from kitchensync.virtual_kitchen.world import boards
from kitchensync.virtual_kitchen.world.motion import simulated_motion
from kitchensync.virtual_kitchen.world.optics import Optics

pytestmark = pytest.mark.slow

BOARD, PRINT = Board(), boards.DrawnBoard(11, 8, 0.024, 0.018)
PV = Optics("pinhole", 1280, 720, 1010, 1010, 639.5, 359.5, (0, 0, 0, 0, 0))
GOPRO = Optics("fisheye", 3840, 2160, 1760, 1760, 1920, 1080, (0.03, -0.01, 0.004, -0.001))


def mount() -> np.ndarray:
    pose = np.eye(4)
    pose[:3, :3] = Rotation.from_rotvec([0.12, -0.05, 0.03]).as_matrix()
    pose[:3, 3] = [0.03, -0.08, 0.02]
    return pose


def view_of(optics: Optics, pose: np.ndarray, name: str, rng: np.random.Generator) -> BoardDetection:
    at = PRINT.corners() @ pose[:3, :3].T + pose[:3, 3]
    pixels = optics.pixels(at) + rng.normal(0, 0.1, (len(at), 2))
    kept = np.all((pixels > 5) & (pixels < [optics.width - 5, optics.height - 5]), axis=1) & (at[:, 2] > 0.05)
    return BoardDetection(name, np.flatnonzero(kept), pixels[kept], (optics.width, optics.height), 0.7)


def pairs_of(count: int, gopro_from_pv: np.ndarray, seed: int = 1) -> list[BoardPair]:
    rng = np.random.default_rng(seed)
    lens = Pinhole(1280, 720, 1010, 1010, 639.5, 359.5)
    pairs = []
    for index in range(count):
        ray = PV.ray(*(rng.uniform(0.35, 0.65, 2) * [1280, 720]))
        tilt = tuple(rng.uniform(-0.6, 0.6, 2))
        pose = boards.looking_at(
            PRINT, rng.uniform(0.35, 0.7), tilt, rng.uniform(-0.3, 0.3), (0.13, 0.1), ray
        )
        name = f"instant {index}"
        pairs.append(
            BoardPair(view_of(PV, pose, name, rng), view_of(GOPRO, gopro_from_pv @ pose, name, rng), lens)
        )
    return pairs


def known_gopro(sigma_px: float = 0.1) -> Intrinsics:
    lens = Fisheye(3840, 2160, 1760, 1760, 1920, 1080, *GOPRO.k)
    sigma = np.array([sigma_px] * 4 + [1e-5] * 4)
    nothing = np.zeros((0, 4, 4))
    unseen, grid = np.outer(detector_error(lens), detector_error(lens)), np.zeros((9, 16))
    return Intrinsics(
        lens, sigma, np.full(8, 20.0), np.diag(sigma**2) + unseen, 0.1, 0.1, grid, (), {}, nothing, (), 1.0, unseen
    )  # fmt: skip


@pytest.mark.slow
def test_the_mount_is_estimated_within_its_stated_uncertainty():
    estimate = from_board(pairs_of(20, mount()), BOARD, known_gopro())
    turn = Rotation.from_matrix(estimate.b_from_a[:3, :3] @ mount()[:3, :3].T).as_rotvec()
    off = np.concatenate((turn, estimate.b_from_a[:3, 3] - mount()[:3, 3]))
    assert np.degrees(np.linalg.norm(off[:3])) < 0.1
    assert np.linalg.norm(off[3:]) < 3e-3
    assert np.all(np.abs(off) < 3 * estimate.sigma)
    assert np.all(estimate.sigma > np.sqrt(np.diag(estimate.covariance))), (
        "twenty instants give a wide interval"
    )
    assert not estimate.left_out


@pytest.mark.slow
def test_lens_uncertainty_adds_to_mount_uncertainty():
    pairs = pairs_of(20, mount())
    sure, unsure = (from_board(pairs, BOARD, known_gopro(px)) for px in (0.1, 8.0))
    assert unsure.sigma_mm > 3 * sure.sigma_mm


def test_an_error_common_to_all_frames_of_the_front_camera_is_stated_separately():
    pairs, lens = pairs_of(12, mount()), pinned(known_gopro())
    estimate = from_board(pairs, BOARD, lens)
    middle, stretch = np.array([639.5, 359.5]), 1 + DETECTOR_PX / 960
    stretched = [
        replace(p, in_a=replace(p.in_a, pixels=middle + stretch * (p.in_a.pixels - middle))) for p in pairs
    ]
    moved = from_board(stretched, BOARD, lens).b_from_a[:3, 3] - estimate.b_from_a[:3, 3]
    assert np.sqrt(np.diag(estimate.systematic)[3:]) == pytest.approx(np.abs(moved), rel=0.1, abs=1e-8)
    assert np.linalg.norm(moved) > 3e-6
    assert np.linalg.eigvalsh(estimate.covariance - estimate.systematic).min() > -1e-15


def pinned(lens: Intrinsics) -> Intrinsics:
    """Return the same lens without uncertainty."""
    return replace(lens, covariance=np.zeros((8, 8)), systematic=np.zeros((8, 8)))


def test_an_instant_with_one_row_of_the_board_in_view_is_left_out():
    """Ten corners on one line do not determine a pose: one such view once made the whole fit fail."""
    pairs = pairs_of(12, mount())
    whole, row = pairs[4].in_a, pairs[4].in_a.ids < BOARD.columns - 1
    pairs[4] = replace(pairs[4], in_a=replace(whole, ids=whole.ids[row], pixels=whole.pixels[row]))
    estimate = from_board(pairs, BOARD, known_gopro())
    assert estimate.left_out == {"instant 4": "its corners lie on one line"}
    assert len(estimate.used) == 11


@pytest.mark.slow
def test_an_instant_at_which_the_mount_moved_is_left_out_and_a_loose_mount_refused():
    slipped = mount()
    slipped[:3, :3] = Rotation.from_rotvec([0.02, 0, 0]).as_matrix() @ slipped[:3, :3]
    pairs = pairs_of(20, mount())
    pairs[4] = pairs_of(5, slipped)[4]
    estimate = from_board(pairs, BOARD, known_gopro())
    assert estimate.left_out == {"instant 4": "the mount or the head moved"}
    rng = np.random.default_rng(8)
    loose = []
    for index in range(14):
        shaken = mount()
        shaken[:3, :3] = Rotation.from_rotvec(rng.normal(0, 0.02, 3)).as_matrix() @ shaken[:3, :3]
        loose.append(pairs_of(index + 1, shaken)[index])
    with pytest.raises(Refused, match="one rigid mount does not explain"):
        from_board(loose, BOARD, known_gopro())
    with pytest.raises(Refused, match="5 instants with the board in both pictures"):
        from_board(pairs[:5], BOARD, known_gopro())


def turning(seconds: float, turn: np.ndarray, seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Return angular velocities of a cook's head in two gyroscopes with bias and noise, 200 Hz."""
    rng = np.random.default_rng(seed)
    of_a = simulated_motion(seed).angular_velocity(np.arange(0, seconds, 1 / 200))
    of_b = of_a @ turn.T + [0.01, -0.02, 0.005] + rng.normal(0, 0.02, of_a.shape)
    return of_a + rng.normal(0, 0.02, of_a.shape), of_b


def test_motion_alone_gives_the_rotation_within_its_stated_uncertainty():
    turn = Rotation.from_rotvec([0.5, -1.2, 2.0]).as_matrix()
    inside = []
    for seed in range(12):
        estimate = rotation_from_motion(200, *turning(60, turn, seed))
        off = Rotation.from_matrix(estimate.b_from_a @ turn.T).as_rotvec()
        assert np.degrees(np.linalg.norm(off)) < 0.3
        inside.append(np.abs(off) < 2 * estimate.sigma)
    assert np.mean(inside) > 0.9


def test_turning_about_one_axis_and_a_still_head_are_refused():
    of_a = np.zeros((6000, 3))
    of_a[:, 1] = np.sin(np.arange(6000) / 100)
    for motion in (of_a, of_a * 0):
        with pytest.raises(Refused, match="one axis only"):
            rotation_from_motion(200, motion, motion)


def test_a_mount_that_slipped_in_the_middle_is_seen_and_a_tight_one_is_not():
    turn = Rotation.from_rotvec([0.1, -0.2, 0.05]).as_matrix()
    of_a, of_b = turning(300, turn)
    assert not check_mount(200, of_a, of_b).moved
    slip = Rotation.from_rotvec(np.radians([3.0, 0, 0])).as_matrix()
    of_b[30_000:] = of_b[30_000:] @ slip.T
    checked = check_mount(200, of_a, of_b, turn)
    assert checked.moved
    assert checked.turned_deg[0] < 0.5
    assert checked.turned_deg[-1] == pytest.approx(3.0, abs=0.4)

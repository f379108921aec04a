"""Poses between poses against a motion that is known, and nothing where nothing is known."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation, Slerp

from kitchensync.storage.timeline.pose_track import PoseTrack, rotation_wxyz

BIG = 133_875_715_436_816_907
GAP = 2_500_000


def wire_pose(t_s: float) -> np.ndarray:
    """A head that turns by 0.5 rad/s about a slanted axis while it goes on a line, as a headset sends it."""
    pose = np.eye(4, dtype=np.float32)
    turn = Rotation.from_rotvec(0.5 * t_s * np.array([0.6, 0.8, 0.0])).as_matrix()
    pose[:3, :3] = turn.T
    pose[3, :3] = [t_s, 2 * t_s, -t_s]
    return pose


def track(times_s: list[float], world: list[int] | None = None) -> PoseTrack:
    ticks = np.round(np.array(times_s) * 1e7).astype(np.int64)
    wire = np.stack([wire_pose(t) for t in times_s])
    return PoseTrack.of_wire(ticks, wire, np.array(world or [0] * len(times_s), np.int32))


def test_a_steady_motion_is_met_between_its_poses():
    found = track([0.0, 0.2, 0.4]).at([0, 500_000, 3_000_000, 4_000_000], longest_gap=GAP)
    for t_s, pose in zip((0.0, 0.05, 0.3, 0.4), found.world_from_local, strict=True):
        expected = wire_pose(t_s).T
        assert np.abs(pose - expected).max() < 1e-6
    assert found.world.tolist() == [0, 0, 0, 0]


def test_nothing_is_known_outside_across_a_gap_or_across_a_new_world():
    found = track([0.0, 0.1, 0.5, 0.6, 0.7], [0, 0, 0, 0, 1]).at(
        [-1, 3_000_000, 6_500_000, 7_000_001, 5_500_000], longest_gap=GAP
    )
    assert np.isnan(found.world_from_local[:4]).all(axis=(1, 2)).all()
    assert found.world.tolist() == [-1, -1, -1, -1, 0]


def test_poses_of_zeros_are_left_out():
    wire = np.stack([wire_pose(0.0), np.zeros((4, 4), np.float32), wire_pose(0.2)])
    found = PoseTrack.of_wire(np.array([0, 10**6, 2 * 10**6]), wire, np.zeros(3, np.int32))
    assert np.isnan(found.position_m[1]).all()
    between = found.at([10**6], longest_gap=GAP).world_from_local
    assert np.abs(between[0] - wire_pose(0.1).T).max() < 1e-6


def test_a_stamp_that_comes_twice_counts_once_and_an_untracked_one_not_at_all():
    wire = np.stack([wire_pose(0.05), np.zeros((4, 4), np.float32), wire_pose(0.0), wire_pose(9.0)])
    found = PoseTrack.of_wire(np.array([500_000, 0, 0, 0]), wire, np.zeros(4, np.int32))
    poses = found.at([0, 250_000]).world_from_local
    assert np.abs(poses - np.stack([wire_pose(0.0).T, wire_pose(0.025).T])).max() < 1e-6


def test_what_is_fixed_to_a_head_moves_with_it():
    other = np.eye(4)
    other[:3, :3] = Rotation.from_rotvec([0.3, -0.2, 0.9]).as_matrix()
    other[:3, 3] = [0.1, 0.2, -0.05]
    found = track([0.0, 0.05, 0.1]).moved(other).at([0, 500_000])
    for t_s, pose in zip((0.0, 0.05), found.world_from_local, strict=True):
        assert np.abs(pose - wire_pose(t_s).T @ other).max() < 1e-6


def made(ticks: np.ndarray, position: np.ndarray, turns: np.ndarray) -> PoseTrack:
    return PoseTrack(ticks, position, turns, np.zeros(len(ticks), np.int32))


def head(seed=0, count=90):
    rng = np.random.default_rng(seed)
    ticks = BIG + np.arange(count, dtype=np.int64) * 333_333
    turns = Rotation.from_rotvec(np.cumsum(rng.normal(0, 0.05, (count, 3)), axis=0))
    return ticks, np.cumsum(rng.normal(0, 0.01, (count, 3)), axis=0), turns


def test_slerp_agrees_with_scipy_even_when_signs_flip():
    ticks, position, turns = head()
    quaternions = turns.as_quat()[:, [3, 0, 1, 2]] * np.where(np.arange(len(ticks)) % 3 == 0, -1, 1)[:, None]
    master = ticks[:-1] + 123_456
    found = made(ticks, position, quaternions).at(master)
    since = (ticks - BIG) / 1e7
    expected = Slerp(since, turns)((master - BIG) / 1e7)
    angle = (Rotation.from_quat(found.rotation_wxyz[:, [1, 2, 3, 0]]).inv() * expected).magnitude()
    assert found.valid.all()
    assert angle.max() < 1e-6
    for axis in range(3):
        assert np.allclose(
            found.position_m[:, axis], np.interp((master - BIG) / 1e7, since, position[:, axis])
        )


def test_poses_are_not_invented_across_gaps_or_beyond_the_ends():
    ticks, position, turns = head()
    quaternions = turns.as_quat()[:, [3, 0, 1, 2]]
    keep = np.ones(len(ticks), dtype=bool)
    keep[40:45] = False  # 200 ms
    position[10] = np.nan  # lost tracking: 67 ms, bridged
    master = np.concatenate([[BIG - 5], ticks + 1000])
    found = made(ticks[keep], position[keep], quaternions[keep]).at(master)
    assert not found.valid[0]
    assert not found.valid[-1]
    assert found.valid[1 + 9 : 1 + 12].all()
    assert not found.valid[1 + 39 : 1 + 45].any()
    assert np.isnan(found.position_m[~found.valid]).all()
    assert np.isnan(found.rotation_wxyz[~found.valid]).all()


def test_a_pose_at_its_own_stamp_is_itself():
    ticks, position, turns = head()
    quaternions = turns.as_quat()[:, [3, 0, 1, 2]]
    found = made(ticks, position, quaternions).at(ticks)
    assert found.valid.all()
    assert np.allclose(found.position_m, position)
    assert np.allclose(np.abs(np.sum(found.rotation_wxyz * quaternions, axis=1)), 1)


def test_broken_matrices_have_no_rotation():
    matrices = np.stack([np.eye(3), np.zeros((3, 3)), np.full((3, 3), np.nan)])
    found = rotation_wxyz(matrices)
    assert np.allclose(found[0], [1, 0, 0, 0])
    assert np.isnan(found[1:]).all()


def test_nothing_is_interpolated_between_worlds():
    """As if each world were interpolated alone, which leaves the time between them without a pose."""
    random = np.random.default_rng(3)
    ticks = np.arange(60, dtype=np.int64) * 333_333
    world = np.repeat([0, 1, 2], 20)
    position = random.normal(0, 1, (60, 3)) + world[:, None] * 40.0
    turns = random.normal(0, 1, (60, 4))
    turns /= np.linalg.norm(turns, axis=1, keepdims=True)
    at = np.sort(random.integers(-333_333, 61 * 333_333, 500))
    found = PoseTrack(ticks, position, turns, world).at(at)
    for number in range(3):
        rows = world == number
        alone = made(ticks[rows], position[rows], turns[rows]).at(at)
        assert ((found.world == number) == alone.valid).all()
        assert np.array_equal(found.position_m[alone.valid], alone.position_m[alone.valid])
        assert np.array_equal(found.rotation_wxyz[alone.valid], alone.rotation_wxyz[alone.valid])
    assert (~found.valid == (found.world == -1)).all()

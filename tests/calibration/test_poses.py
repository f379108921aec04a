"""Poses between poses against a motion that is known, and nothing where nothing is known."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from calibration.geometry.poses import PoseTrack


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
    poses, world = track([0.0, 0.2, 0.4]).at([0, 500_000, 3_000_000, 4_000_000])
    for t_s, pose in zip((0.0, 0.05, 0.3, 0.4), poses, strict=True):
        expected = wire_pose(t_s).T
        assert np.abs(pose - expected).max() < 1e-6
    assert world.tolist() == [0, 0, 0, 0]


def test_nothing_is_known_outside_across_a_gap_or_across_a_new_world():
    poses, world = track([0.0, 0.1, 0.5, 0.6, 0.7], [0, 0, 0, 0, 1]).at(
        [-1, 3_000_000, 6_500_000, 7_000_001, 5_500_000]
    )
    assert np.isnan(poses[:4]).all(axis=(1, 2)).all()
    assert world.tolist() == [-1, -1, -1, -1, 0]


def test_poses_of_zeros_are_left_out():
    wire = np.stack([wire_pose(0.0), np.zeros((4, 4), np.float32), wire_pose(0.2)])
    found = PoseTrack.of_wire(np.array([0, 10**6, 2 * 10**6]), wire, np.zeros(3, np.int32))
    assert found.ticks.tolist() == [0, 2 * 10**6]
    assert np.abs(found.at([10**6])[0][0] - wire_pose(0.1).T).max() < 1e-6

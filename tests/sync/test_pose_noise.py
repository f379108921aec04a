"""Noise of poses: its colour is found, and the shift comes out better and with a bound that holds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation

from kitchensync.sync.align.gyro import align_pair
from kitchensync.sync.align.headset_gyro import head_pose_gyro
from kitchensync.sync.fit.pairing import FINE_HZ
from kitchensync.sync.fit.resample import make_track
from kitchensync.sync.fit.whole_fit import rising_noise_s

EPOCH = 133_875_715_436_816_907
POSE_HZ, SEEN_HZ = 30.0, 200.0


@pytest.mark.parametrize("time_s", [0.1, 0.35, 1.0])
def test_noise_of_angles_above_that_of_rates_is_found(time_s):
    """White angles, differenced, on white rates: their spectra cross at 1 / (2 pi T)."""
    rng = np.random.default_rng(4)
    angle, rate = rng.normal(size=(2, 3, 20_000))
    found = rising_noise_s(np.diff(angle, axis=1) * FINE_HZ * time_s + rate[:, 1:])
    assert found == pytest.approx(time_s, rel=0.3)


def test_flat_noise_is_left_alone():
    assert rising_noise_s(np.random.default_rng(5).normal(size=(3, 6000))) == 0.0


def test_noise_that_falls_is_left_alone():
    walk = np.cumsum(np.random.default_rng(6).normal(size=(3, 6000)), axis=1)
    assert rising_noise_s(walk) == 0.0


def head(rng, seconds):
    """Rates of a head that turns briskly around changing axes, as a spline of the time."""
    t_s = np.arange(-2.0, seconds + 2.0, 0.12)
    return CubicSpline(t_s, rng.normal(0.0, 0.7, (len(t_s), 3)), axis=0)


def seen(rng, rates, seconds, noise_rad):
    """Ticks and poses (w x y z) at 30 Hz, integrated in steps of 1/1920 s."""
    steps = 64
    grid = np.arange(0.0, seconds, 1.0 / (POSE_HZ * steps))
    each = Rotation.from_rotvec(rates(grid + 0.5 * (grid[1] - grid[0])) * (grid[1] - grid[0]))
    turned, poses = Rotation.identity(), []
    for first in range(0, len(grid) - steps + 1, steps):
        part = each[first : first + steps]
        while len(part) > 1:
            part = part[0::2] * part[1::2]
        turned = turned * part[0]
        poses.append(turned)
    noise = Rotation.from_rotvec(rng.normal(0.0, noise_rad, (len(poses), 3)))
    x, y, z, w = (Rotation.concatenate(poses) * noise).as_quat().T
    at_s = np.arange(1, len(poses) + 1) / POSE_HZ
    return EPOCH + np.rint(at_s * 1e7).astype(np.int64), np.column_stack([w, x, y, z])


def test_rates_of_poses_are_those_of_the_head_also_while_its_axis_moves():
    rng = np.random.default_rng(7)
    rates = head(rng, 20.0)
    ticks, turns = seen(rng, rates, 20.0, 0.0)
    track = head_pose_gyro(ticks, turns).track
    inner = slice(100, -100)
    at_s = track.t_s[inner] + (ticks[0] - EPOCH) / 1e7
    smooth = np.ones(50) / 50.0  # the slow part: what is wrong with quick turns of 30 Hz does not matter here
    away = [np.convolve(one, smooth, "valid") for one in (track.rad_per_s[inner] - rates(at_s)).T]
    assert np.std(away) < 1.5e-4  # 3.6e-4 where turns are taken for integrals of the rate


@pytest.mark.slow
def test_poses_of_a_minute_are_placed_inside_a_bound_that_says_something():
    errors_ms, bounds_ms = [], []
    for seed in range(6):
        rng = np.random.default_rng([8, seed])
        rates = head(rng, 40.0)
        ticks, turns = seen(rng, rates, 40.0, np.deg2rad(0.03))
        t_s = np.arange(0.0, 37.0, 1.0 / SEEN_HZ)
        camera = rates(t_s + 1.25) + rng.normal(0.0, 0.004, (len(t_s), 3))
        found = align_pair(head_pose_gyro(ticks, turns), make_track("camera", t_s, camera), unit="rad_per_s")
        assert found.clock_map is not None
        truth = EPOCH + np.rint((np.array([0.0, 37.0]) + 1.25) * 1e7).astype(np.int64)
        errors_ms.append(np.abs(found.clock_map.to_ticks(np.array([0.0, 37.0])) - truth).max() / 1e4)
        bounds_ms.append(max(found.bound95_ms))
    assert np.mean(np.array(errors_ms) <= bounds_ms) >= 5 / 6
    assert np.median(bounds_ms) < 0.1  # 0.11 and more by plain least squares

"""Inertial sensors at rest compared with noise of known strength."""

from __future__ import annotations

import numpy as np
import pytest

from kitchensync.calibration.estimate.imu_at_rest import allan, down, rest
from kitchensync.storage.geometry.errors import Refused

HZ = 200.0


def test_white_noise_has_its_density_at_every_averaging_time():
    rng = np.random.default_rng(1)
    samples = rng.normal(0, 0.05, (120_000, 3))
    curve = allan(samples, HZ)
    assert curve.white_noise == pytest.approx(0.05 / np.sqrt(HZ), rel=0.05)
    slope = np.polyfit(np.log(curve.tau_s[:20]), np.log(curve.deviation[:20]), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.05)


def test_the_estimator_is_the_definition():
    samples = np.random.default_rng(2).normal(0, 1, (300, 3)).cumsum(0)
    curve = allan(samples, 1.0, points=5)
    for tau, deviation in zip(curve.tau_s.astype(int), curve.deviation, strict=True):
        starts = range(len(samples) - 2 * tau + 1)
        steps = [samples[i + tau : i + 2 * tau].mean(0) - samples[i : i + tau].mean(0) for i in starts]
        assert deviation == pytest.approx(np.sqrt(np.mean(np.square(steps), axis=0) / 2))


def test_the_longest_rest_is_found_between_two_motions():
    rng = np.random.default_rng(3)
    bias = np.array([0.01, -0.02, 0.03])
    samples = rng.normal(0, 0.002, (12_000, 3)) + bias
    samples[:3000] += rng.normal(0, 1, (3000, 3))
    samples[9000:] += 2.0
    still = rest(samples, HZ, 0.02)
    assert (still.start, still.stop) == (3000, 9000)
    assert np.all(np.abs(still.mean - bias) < 4 * still.sigma + 1e-6)
    assert still.noise == pytest.approx(0.002, rel=0.1)
    with pytest.raises(Refused, match="50 samples are less than a second"):
        rest(samples[:50], HZ, 0.02)
    with pytest.raises(Refused, match="lay still for 0 s at most"):
        rest(rng.normal(0, 1, (4000, 3)), HZ, 0.02)


def test_down_is_against_what_an_accelerometer_feels():
    direction, excess = down(np.array([0.0, 9.9, 0.0]))
    assert direction.tolist() == [0, -1, 0]
    assert excess == pytest.approx(9.9 - 9.80665)
    with pytest.raises(Refused, match="not gravity"):
        down(np.array([0.0, 1.0, 0.0]))

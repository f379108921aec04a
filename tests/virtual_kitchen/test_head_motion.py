"""The head: rates, orientations and forces agree with each other, for the simulated and the measured one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from kitchensync.virtual_kitchen.world.motion import HeadMotion, replayed_motion, simulated_motion


def _measured() -> HeadMotion:
    t_s = np.arange(0, 20, 1 / 200)
    rate = np.stack([np.sin(3 * t_s), 0.7 * np.cos(1.3 * t_s), 0.4 * np.sin(7 * t_s)], axis=1)
    return replayed_motion(t_s, rate)


@pytest.mark.parametrize("make", [lambda: simulated_motion(5), _measured], ids=["simulated", "measured"])
def test_rate_is_the_derivative_of_orientation(make: Callable[[], HeadMotion]) -> None:
    motion = make()
    t_s = np.arange(15, 25, 1e-3)  # across the end of the measured motion
    turns = Rotation.from_quat(motion.orientation(t_s)[:, [1, 2, 3, 0]])
    steps = (turns[:-1].inv() * turns[1:]).as_rotvec() * 1e3
    rates = motion.angular_velocity(t_s)
    assert np.abs(steps - (rates[1:] + rates[:-1]) / 2).max() < 2e-3


def test_simulated_head_is_lively_and_within_reason() -> None:
    rates_deg = np.degrees(
        np.linalg.norm(simulated_motion(9).angular_velocity(np.arange(0, 300, 0.01)), axis=1)
    )
    assert 100 < rates_deg.max() < 230
    assert 15 < np.sqrt(np.mean(rates_deg**2)) < 70


def test_asked_in_any_order_the_answer_is_the_same() -> None:
    t_s = np.array([3.0, 7000.0, 20.0])
    late_first, in_order = simulated_motion(6), simulated_motion(6)
    late = late_first.angular_velocity(t_s)
    assert np.array_equal(in_order.angular_velocity(t_s[[0, 2]]), late[[0, 2]])


def test_force_is_gravity_plus_the_derivative_of_position() -> None:
    motion = simulated_motion(8)
    t_s = np.arange(10, 20, 1e-3)
    acceleration = np.gradient(np.gradient(motion.position(t_s), t_s, axis=0), t_s, axis=0)
    world = Rotation.from_quat(motion.orientation(t_s)[:, [1, 2, 3, 0]]).apply(motion.specific_force(t_s))
    assert np.abs(world - acceleration - [0, 9.81, 0])[5:-5].max() < 0.05


def test_measured_motion_is_given_back_and_then_held_still(shared_data: Callable[[str], Path]) -> None:
    with np.load(shared_data("motion/real_gyro.npz")) as archive:
        t_s, rates = archive["ear_normal_right_t"], archive["ear_normal_right_w"].astype(np.float64)
    motion = replayed_motion(t_s, rates)
    assert np.abs(motion.angular_velocity(t_s[5:-5]) - rates[5:-5]).std() < 2e-3
    still = motion.angular_velocity(np.arange(t_s[-1] + 1, t_s[-1] + 60, 0.01))
    assert 0 < np.degrees(np.abs(still)).max() < 3

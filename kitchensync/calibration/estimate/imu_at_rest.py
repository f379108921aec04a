"""Bias, noise and the direction of gravity from an inertial sensor at rest.

Allan deviation after IEEE Std 952-2020, annex C (overlapping estimator).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kitchensync.sensors.mask_runs import marked_runs
from kitchensync.shell.array_types import Floats
from kitchensync.storage.geometry.errors import Refused

GRAVITY_M_PER_S2 = 9.80665  # standard gravity, ISO 80000-3
STILL_GYROSCOPE_RAD_PER_S = 0.02
STILL_ACCELEROMETER_M_PER_S2 = 0.2
MIN_REST_S = 10.0


@dataclass(frozen=True)
class AllanCurve:
    """Allan deviation over averaging times, for each axis."""

    tau_s: Floats
    "(t,)"
    deviation: Floats
    "(t, 3) in the sensor's unit."

    @property
    def white_noise(self) -> Floats:
        """Density of white noise (3,) in unit/sqrt(Hz): the deviation at one second on the line of slope -1/2."""
        early = self.tau_s <= max(0.3, 4 * self.tau_s[0])
        density: Floats = np.median(self.deviation[early] * np.sqrt(self.tau_s[early])[:, None], axis=0)
        return density

    @property
    def bias_instability(self) -> Floats:
        """Minimum of the curve (3,) over 0.664, in the sensor's unit; an upper limit for short recordings."""
        lowest: Floats = self.deviation.min(0) / 0.664
        return lowest


def allan(samples: Floats, rate_hz: float, points: int = 40) -> AllanCurve:
    """Return the overlapping Allan deviation of samples (n, 3) taken `rate_hz` times a second."""
    count = len(samples)
    if count < 20:
        raise Refused(f"{count} samples are too few for an Allan deviation")
    sums = np.concatenate((np.zeros((1, samples.shape[1])), np.cumsum(samples - samples.mean(0), axis=0)))
    sizes = np.unique(np.round(np.geomspace(1, count // 5, points)).astype(int))
    curve = []
    for m in sizes:
        second = sums[2 * m :] - 2 * sums[m:-m] + sums[: -2 * m]
        curve.append(np.sqrt(np.mean(second**2, axis=0) / 2) / m)
    return AllanCurve(sizes / rate_hz, np.array(curve))


@dataclass(frozen=True)
class Rest:
    """Statistics of a sensor at rest."""

    start: int
    stop: int
    "Samples [start, stop) of the longest rest."
    mean: Floats
    "(3,) in the sensor's unit: the bias of a gyroscope; gravity plus bias of an accelerometer."
    sigma: Floats
    "(3,) standard error of the mean, from batches of one second."
    noise: Floats
    "(3,) standard deviation of single samples."


def rest(samples: Floats, rate_hz: float, still_within: float) -> Rest:
    """Find the longest rest, in which the spread of each second stays below `still_within`, and describe it.

    Raises Refused if it lasts less than ten seconds.
    """
    second = max(2, round(rate_hz))
    count = len(samples) // second
    if not count:
        raise Refused(
            f"{len(samples)} samples are less than a second: put the rig on a table and record longer"
        )
    blocks = samples[: count * second].reshape(count, second, -1)
    near = np.linalg.norm(blocks.mean(1) - np.median(blocks.mean(1), axis=0), axis=1) < still_within
    still = (np.linalg.norm(blocks.std(1), axis=1) < still_within) & near
    first, end = max(marked_runs(still), key=lambda run: run[1] - run[0], default=(0, 0))
    if end - first < MIN_REST_S:
        seconds = end - first
        raise Refused(
            f"the sensor lay still for {seconds} s at most, {MIN_REST_S:.0f} s are needed: put the rig on a table"
        )
    part = blocks[first:end]
    means = part.mean(1)
    return Rest(
        first * second, end * second, means.mean(0),
        means.std(0, ddof=1) / np.sqrt(len(means)), part.reshape(-1, samples.shape[1]).std(0),
    )  # fmt: skip


def down(specific_force: Floats) -> tuple[Floats, float]:
    """Return the unit vector (3,) that points down in the sensor's axes, and the excess over gravity in m/s^2.

    At rest an accelerometer measures the supporting force, which points up.
    """
    length = float(np.linalg.norm(specific_force))
    if not 0.5 * GRAVITY_M_PER_S2 < length < 1.5 * GRAVITY_M_PER_S2:
        raise Refused(
            f"the accelerometer measures {length:.2f} m/s^2 at rest, which is not gravity: check its unit"
        )
    return -specific_force / length, length - GRAVITY_M_PER_S2

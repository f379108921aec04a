"""Rotation between two devices on one head from their gyroscopes, and whether it stayed constant.

Both gyroscopes measure the same angular velocity in their own axes: `w_b = R w_a + bias`. R solves Wahba's problem
(Wahba 1965), here by singular values (Kabsch 1976, Markley 1988); subtracting the means removes the biases.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.spatial.transform import Rotation

from kitchensync.calibration.estimate.freedom import UncertaintyPart, ViewInformation, stated_sigma
from kitchensync.shell.array_types import Floats
from kitchensync.storage.geometry.errors import Refused

BLOCK_S = 5.0
"Length of the blocks of the jackknife; errors of neighbouring samples are correlated."
WINDOW_S, SHORT_WINDOW_S = 60.0, 30.0
"Window of `check_mount`, and that in recordings shorter than four minutes."
MIN_TURNING_RAD_PER_S = 0.03
"Smallest spread of the angular velocity about a second axis; rotation about one axis does not determine the result."
MOVED_DEG, MOVED_SIGMAS = 0.5, 4.0


@dataclass(frozen=True)
class MotionRotation:
    """Axes of device b from axes of device a."""

    b_from_a: Floats
    "(3, 3)"
    covariance: Floats
    "(3, 3) of the rotation vector in b, rad^2, as estimated."
    sigma: Floats
    "(3,) of the rotation vector, rad, widened by Student's quantile: two sigmas contain 95 %."
    sigma_deg: float
    "The same about the worst axis, degrees."
    residual_rad_per_s: float
    "RMS of the residuals."


def rotation_from_motion(rate_hz: float, rates_a: Floats, rates_b: Floats) -> MotionRotation:
    """Estimate the rotation from angular velocities (n, 3) of both, in rad/s, sampled simultaneously at `rate_hz`.

    Raises Refused if the head turned too little, or only about one axis.
    """
    block = max(1, round(BLOCK_S * rate_hz))
    blocks = len(rates_a) // block
    if blocks < 3:
        raise Refused(f"{len(rates_a) / rate_hz:.0f} s of motion, at least {3 * BLOCK_S:.0f} s are needed")
    rates_a, rates_b = rates_a[: blocks * block], rates_b[: blocks * block]
    spread = np.sqrt(np.linalg.eigvalsh(np.cov(rates_a.T)))  # ascending, so [1] is about a second axis
    if spread[1] < MIN_TURNING_RAD_PER_S:
        raise Refused(
            f"the head turned about one axis only ({np.degrees(spread[1]):.1f} deg/s about others): nod and tilt it"
        )
    pairs = list(zip(np.split(rates_a, blocks), np.split(rates_b, blocks), strict=True))
    sums_a, sums_b = np.array([a.sum(0) for a, _ in pairs]), np.array([b.sum(0) for _, b in pairs])
    products = np.array([b.T @ a for a, b in pairs])
    count, sum_a, sum_b, product = len(rates_a), sums_a.sum(0), sums_b.sum(0), products.sum(0)
    turn = _kabsch(count, sum_a, sum_b, product)
    without_block = [
        _kabsch(count - block, sum_a - sums_a[i], sum_b - sums_b[i], product - products[i])
        for i in range(blocks)
    ]
    moved = np.stack([_difference(other, turn) for other in without_block])
    moved -= moved.mean(0)
    residuals = (rates_b - rates_b.mean(0)) - (rates_a - rates_a.mean(0)) @ turn.T
    covariance = (blocks - 1) / blocks * moved.T @ moved
    contrasts = np.concatenate((np.eye(3), np.linalg.eigh(covariance)[1][:, -1:].T))
    freedom = _information(rates_a @ turn.T, blocks).freedom(contrasts)
    *sigma, worst = stated_sigma(contrasts, [UncertaintyPart(covariance, freedom)])
    rms = float(np.sqrt(np.mean(np.sum(residuals**2, axis=1))))
    return MotionRotation(turn, covariance, np.array(sigma), float(np.degrees(worst)), rms)


def _information(turning: Floats, blocks: int) -> ViewInformation:
    """Return each block's information about rotation vector and bias, from angular velocities (n, 3) in b.

    A small rotation d and a bias b change a sample w by `d x w + b`.
    """
    each = turning.reshape(blocks, -1, 3)
    by_turn = np.cross(np.eye(3)[:, None, None], each)  # (3, blocks, n, 3)
    by_bias = np.broadcast_to(np.eye(3)[:, None, None], by_turn.shape)
    change = np.concatenate((by_turn, by_bias))
    return ViewInformation(np.einsum("pbni,qbni->bpq", change, change, optimize=True), np.eye(3, 6))


def _kabsch(count: int, sum_a: Floats, sum_b: Floats, product: Floats) -> Floats:
    """Return the rotation (3, 3) from the sums (3,) of both rates and of their products (3, 3)."""
    u, _, vt = np.linalg.svd(product - np.outer(sum_b, sum_a) / count)
    flip = np.diag([1.0, 1.0, np.sign(np.linalg.det(u @ vt))])  # a rotation even if a reflection fits better
    turn: Floats = u @ flip @ vt
    return turn


def _difference(rotation: Floats, reference: Floats) -> Floats:
    vector: Floats = Rotation.from_matrix(rotation @ reference.T).as_rotvec()
    return vector


@dataclass(frozen=True)
class MountCheck:
    """Rotation between two devices in each window of a recording."""

    middle_s: Floats
    "(w,) middle of each window."
    turned_deg: Floats
    "(w,) angle from the rotation of the whole recording; NaN if the head turned too little."
    sigma_deg: Floats
    "(w,)"

    @property
    def moved(self) -> bool:
        """Whether a window differs by more than half a degree and four standard deviations."""
        limit = np.maximum(MOVED_DEG, MOVED_SIGMAS * self.sigma_deg)
        return bool(np.any(self.turned_deg > limit))


def check_mount(
    rate_hz: float, rates_a: Floats, rates_b: Floats, reference: Floats | None = None
) -> MountCheck:
    """Compare the rotation of each window with `reference` (3, 3), or with that of the whole recording."""
    if reference is None:
        reference = rotation_from_motion(rate_hz, rates_a, rates_b).b_from_a
    window_s = WINDOW_S if len(rates_a) >= 4 * WINDOW_S * rate_hz else SHORT_WINDOW_S
    count = max(1, round(len(rates_a) / (window_s * rate_hz)))
    edges = np.linspace(0, len(rates_a), count + 1).astype(int)
    middle, turned, sigma = [], [], []
    for start, stop in pairwise(edges):
        part = slice(start, stop)
        middle.append((start + stop) / 2 / rate_hz)
        try:
            rotation = rotation_from_motion(rate_hz, rates_a[part], rates_b[part])
        except Refused:
            turned.append(np.nan)
            sigma.append(np.nan)
            continue
        turned.append(np.degrees(np.linalg.norm(_difference(rotation.b_from_a, reference))))
        sigma.append(rotation.sigma_deg)
    return MountCheck(np.array(middle), np.array(turned), np.array(sigma))

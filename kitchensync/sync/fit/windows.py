"""The lag of every window, and where between two windows a clock jumped."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from kitchensync.shell.array_types import Floats
from kitchensync.sync.fit.line import Lags, Line
from kitchensync.sync.fit.pairing import FINE_HZ, SMOOTH_HZ, Mask, Pairing

NEWTON_STEPS = 6
LARGEST_STEP_S = 0.040
LONG_RUN_S = 0.5  # residuals of neighbouring cells are not independent
KEEP_CORRELATION = 0.5
KEEP_SIGMA_S = 0.020
SHORTEST_S, LONGEST_S = 1.5, 20.0  # a window of 1.5 s already loses most slow motion with its mean
WINDOWS_IN_SPAN = 8.0  # half overlapping: some 15 lags for the curve


def window_lags(pairing: Pairing, line: Line, turned: Floats, span_s: tuple[float, float]) -> Lags:
    """Lag of every window of clip(T/8, 1.5, 20) s, half overlapping, with the line's slope held.

    `turned` (n, 3) are the camera's cells in the headset's axes. No window reaches over a jump of the line.
    """
    width = float(np.clip((span_s[1] - span_s[0]) / WINDOWS_IN_SPAN, SHORTEST_S, LONGEST_S))
    inner = [at for at in line.shape.breaks_s if span_s[0] < at < span_s[1]]
    rows = []
    for first, last in pairwise([span_s[0], *inner, span_s[1]]):
        here = min(width, max(last - first, SHORTEST_S))
        starts = np.arange(first, last - here + 1e-9, here / 2.0)
        starts = starts if len(starts) else np.array([first])
        rows += [_one_lag(pairing, line, turned, float(start), here) for start in starts]
    t_s, tau, sigma, correlation = np.array(rows).T
    kept = (correlation > KEEP_CORRELATION) & (sigma < KEEP_SIGMA_S)
    return Lags(t_s, tau, sigma, correlation, kept)


def _one_lag(
    pairing: Pairing, line: Line, turned: Floats, start_s: float, width_s: float
) -> tuple[float, float, float, float]:
    """Gauss-Newton: `dtau = -sum(S' . r) / sum |S'|^2`, `r = S_H(t + tau) - R w_G - mean`."""
    grid = pairing.camera
    low, high = np.ceil(np.array([start_s, start_s + width_s]) * grid.hz - 0.5).astype(int) - grid.first
    rows = np.arange(max(low, 0), min(high, len(grid.good)))
    t_s = grid.t_s[rows]
    middle = start_s + 0.5 * width_s
    nothing = (middle, float(line.at(middle)), np.inf, 0.0)
    shift, tau = 0.0, line.at(t_s)
    for step in range(NEWTON_STEPS + 1):
        t_h = t_s + tau + shift
        good = grid.good[rows] & pairing.usable(t_h)
        if good.sum() < 0.5 * width_s * grid.hz:
            return nothing
        w_h, slope = pairing.spline(t_h[good]), pairing.spline(t_h[good], 1)
        w_g = turned[rows[good]]
        w_h, w_g, slope = (x - x.mean(axis=0) for x in (w_h, w_g, slope))
        moved = float((slope**2).sum())
        if moved <= 0.0:
            return nothing
        change = -float((slope * (w_h - w_g)).sum()) / moved
        if step == NEWTON_STEPS or abs(change) < 1e-7:
            break
        shift += float(np.clip(change, -LARGEST_STEP_S, LARGEST_STEP_S))
    sigma = np.sqrt(_long_run_variance((slope * (w_h - w_g)).sum(axis=1))) / moved
    correlation = float((w_h * w_g).sum() / np.sqrt((w_h**2).sum() * (w_g**2).sum() + 1e-30))
    centre = float(t_s[good].mean())
    return centre, float(line.at(centre)) + shift, float(sigma), correlation


def _long_run_variance(u: Floats) -> float:
    """Variance of `sum u` when u is coloured: Bartlett kernel over 0.5 s."""
    u = u - u.mean()
    lags = min(int(LONG_RUN_S * FINE_HZ), len(u) - 1)
    total = float(u @ u)
    for k in range(1, lags + 1):
        total += 2.0 * (1.0 - k / (lags + 1.0)) * float(u[k:] @ u[:-k])
    return max(total, 0.05 * float(u @ u))


def place_jump(
    pairing: Pairing, line: Line, rotation: Floats, size_s: float, between_s: tuple[float, float]
) -> float:
    """Media time of a jump by `size_s`: the split where the cells before fit the old lag, those after the new.

    `line` is right before the jump; `between_s` are media times surely on both sides.
    """
    t_s = pairing.camera.t_s
    rows = np.flatnonzero((t_s > between_s[0]) & (t_s < between_s[1]))
    middle = 0.5 * (between_s[0] + between_s[1])
    if len(rows) < 2:
        return middle
    turned = pairing.camera.values[rows] @ rotation.T
    cost = []
    for shift in (0.0, size_s):
        t_h = t_s[rows] + line.at(t_s[rows]) + shift
        good = pairing.camera.good[rows] & pairing.usable(t_h)
        inside = np.clip(t_h, pairing.headset.t_s[0], pairing.headset.t_s[-1])
        cost.append(np.where(good, ((pairing.spline(inside) - turned) ** 2).sum(axis=1), np.nan))
    gain = np.nan_to_num(cost[0] - cost[1])
    return float(t_s[rows[int(np.argmin(np.cumsum(gain)))]] + 0.5 / pairing.camera.hz)


SOFT_RAD_PER_S = np.deg2rad(40.0)
SETTLE_STEPS = 10  # in periodic motion shift and rotation only creep towards the truth


def soft_weights(rates: Floats) -> Floats:
    """Weights `1/sqrt(1 + |w|^2/(40 deg/s)^2)` (n,): in violent turns mounts give way."""
    return 1.0 / np.sqrt(1.0 + (rates**2).sum(axis=1) / SOFT_RAD_PER_S**2)


def fit_rotation(pairing: Pairing, line: Line, good: Mask) -> Floats:
    """Rotation R, `w_H ~ R w_G` (Kabsch): `M = sum q w_H w_G^T = U S V^T`, `R = U diag(1, 1, det) V^T`."""
    t_s = pairing.camera.t_s[good]
    w_g = pairing.camera.values[good]
    w_h = pairing.spline(t_s + line.at(t_s))
    w_h, w_g = w_h - np.median(w_h, axis=0), w_g - np.median(w_g, axis=0)
    u, _, vt = np.linalg.svd((w_h * soft_weights(w_g)[:, None]).T @ w_g)
    return u @ np.diag([1.0, 1.0, np.sign(np.linalg.det(u @ vt))]) @ vt


def settle(pairing: Pairing, line: Line, good: Mask) -> tuple[Line, Floats]:
    """Move the whole line and turn the rotation together until both rest.

    In periodic motion a small shift looks much like a small turn: fitted in turns, they creep towards the truth.
    """
    for _ in range(SETTLE_STEPS):
        rotation = fit_rotation(pairing, line, good)
        normal, gradient = shift_and_turn(pairing, line, rotation, good)
        change = -float((np.linalg.pinv(normal) @ gradient)[0])
        line = line.moved(float(np.clip(change, -LARGEST_STEP_S, LARGEST_STEP_S)))
        if abs(change) < 1e-7:
            break
    return line, fit_rotation(pairing, line, good)


def shift_and_turn(pairing: Pairing, line: Line, rotation: Floats, good: Mask) -> tuple[Floats, Floats]:
    """Normal matrix (4, 4) and gradient (4,) of `r = S_H(t + tau) - R w_G - mean` in tau and three small turns."""
    t_s = pairing.camera.t_s[good]
    w_g = pairing.camera.values[good] @ rotation.T
    w_h, slope = pairing.spline(t_s + line.at(t_s)), pairing.spline(t_s + line.at(t_s), 1)
    w_h, w_g, slope = (x - x.mean(axis=0) for x in (w_h, w_g, slope))
    columns = [slope, *(-np.cross(axis, w_g) for axis in np.eye(3))]
    jacobian = np.stack([column.ravel() for column in columns], axis=1)
    soft = np.repeat(soft_weights(w_g), 3)[:, None]
    return jacobian.T @ (soft * jacobian), (soft * jacobian).T @ (w_h - w_g).ravel()


def turn_of_halves_deg(pairing: Pairing, line: Line, good: Mask) -> tuple[float, float]:
    """How much the rotations of the first and of the second half differ, and how well that is known (sigma)."""
    halves = [np.zeros_like(good), np.zeros_like(good)]
    for half, part in zip(halves, np.array_split(np.flatnonzero(good), 2), strict=True):
        half[part] = True
    rotations = [fit_rotation(pairing, line, half) for half in halves]
    variance = sum(
        _turn_variance(pairing, line, turn, half) for turn, half in zip(rotations, halves, strict=True)
    )
    a, b = rotations
    cosine = np.clip((np.trace(a.T @ b) - 1.0) / 2.0, -1.0, 1.0)
    return float(np.rad2deg(np.arccos(cosine))), float(np.rad2deg(np.sqrt(variance)))


def _turn_variance(pairing: Pairing, line: Line, rotation: Floats, good: Mask) -> float:
    """Variance (rad^2) of a fitted rotation; the low pass leaves two cells in five to count."""
    normal, _ = shift_and_turn(pairing, line, rotation, good)
    t_s = pairing.camera.t_s[good]
    rest = pairing.spline(t_s + line.at(t_s)) - pairing.camera.values[good] @ rotation.T
    noise = float(np.mean((rest - rest.mean(axis=0)) ** 2)) * FINE_HZ / (2.0 * SMOOTH_HZ)
    return noise * float(np.trace(np.linalg.pinv(normal, hermitian=True)[1:, 1:]))

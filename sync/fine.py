"""Fine alignment at 100 Hz: the rotation, and the lag of every window."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy import signal
from scipy.interpolate import CubicSpline

from sync.line import Lags, Line, bend, fit_line, step_test
from sync.resample import Grid, GyroTrack, box_resample

Floats = npt.NDArray[np.floating]
Mask = npt.NDArray[np.bool_]

FINE_HZ = 100.0
SMOOTH_HZ = 20.0
SMEARED_CELLS = 4
ROTATION_SOFT_RAD_PER_S = np.deg2rad(40.0)
NEWTON_STEPS = 6
LARGEST_STEP_S = 0.040
LONG_RUN_S = 0.5
ROUNDS = 3
SETTLE_STEPS = 10
KEEP_CORRELATION = 0.5
KEEP_SIGMA_S = 0.020
SHORT_CLIP_S = 120.0


def _smooth(grid: Grid) -> Grid:
    """Zero-phase low pass; the cells beside a gap, which it smears, no longer count as good."""
    if len(grid.good) < 4 * FINE_HZ / SMOOTH_HZ + 10:
        return grid
    sos = signal.butter(4, SMOOTH_HZ, fs=grid.hz, output="sos")
    near = np.convolve(~grid.good, np.ones(2 * SMEARED_CELLS + 1), mode="same") > 0.5
    return replace(grid, values=signal.sosfiltfilt(sos, grid.values, axis=0), good=~near)


@dataclass(frozen=True, slots=True)
class Pairing:
    """Both tracks on the fine grid, ready to be compared at any lag."""

    camera: Grid
    headset: Grid
    spline: CubicSpline

    @classmethod
    def of(cls, headset: GyroTrack, camera: GyroTrack) -> Pairing:
        """Resample both to 100 Hz boxes, smooth them alike, and lay a spline through the headset's.

        Without the smoothing, noise pulls lags towards half cells: a spline between two noisy cells is quieter
        than at a cell, so a fit of least squares likes it there (milliseconds, when the head hardly moves).
        """
        grid_h, grid_g = _smooth(box_resample(headset, FINE_HZ)), _smooth(box_resample(camera, FINE_HZ))
        return cls(grid_g, grid_h, CubicSpline(grid_h.t_s, grid_h.values, axis=0))

    def usable(self, t_h_s: Floats) -> Mask:
        """Times of the headset clock where the spline rests on good cells on both sides."""
        cell = np.floor(t_h_s * self.headset.hz - 0.5).astype(np.int64) - self.headset.first
        inside = (cell >= 0) & (cell + 1 < len(self.headset.good))
        at = np.clip(cell, 0, max(len(self.headset.good) - 2, 0))
        return inside & self.headset.good[at] & self.headset.good[at + 1]

    def overlap(self, tau_s: Floats) -> Mask:
        """Camera cells that can be compared at lags `tau_s` (one a cell)."""
        return self.camera.good & self.usable(self.camera.t_s + tau_s)


@dataclass(frozen=True, slots=True)
class Fine:
    """The fitted line with all its evidence."""

    line: Line
    lags: Lags
    coupling: float  # how much worse the shift is known because the rotation is fitted too, at least 1
    rotation: Floats
    rotation_halves_deg: float
    correlation: float
    scale: float
    residual_rms_s: float
    cramer_rao_s: float
    step_s: float
    step_z: float
    step_t_s: float
    overlap_s: tuple[float, float]
    bend_s: Floats  # what a quadratic would change at start, middle, end


def fine_alignment(pairing: Pairing, *, tau_s: float, rate: float, t_ref_s: float) -> Fine | None:
    """Refine the coarse lag; None when no window can be used.

    `tau_s` is the lag at media time `t_ref_s`; `rate - 1` the drift to begin with.
    """
    t_s = pairing.camera.t_s
    good = pairing.overlap(tau_s + (rate - 1.0) * (t_s - t_ref_s))
    if good.sum() < FINE_HZ:
        return None
    first, last = float(t_s[good][0]), float(t_s[good][-1])
    middle = 0.5 * (first + last)
    centre = np.array([tau_s + (rate - 1.0) * (middle - t_ref_s), rate - 1.0])
    line = Line(middle, centre[0], centre[1], np.zeros((2, 2)), np.empty((0, 2)), np.empty(0), 0.0)
    lags = None
    for _ in range(ROUNDS):
        line, rotation = settle(pairing, line, good)
        lags = window_lags(pairing, line, rotation, (first, last))
        if lags.kept.sum() < 3:
            break
        line = fit_line(lags, middle, drift0=rate - 1.0, short=last - first < SHORT_CLIP_S)
        good = pairing.overlap(line.at(t_s))
        if good.sum() < FINE_HZ:
            return None
    assert lags is not None
    return _evidence(pairing, line, lags, good, (first, last))


def fit_rotation(pairing: Pairing, line: Line, good: Mask) -> Floats:
    """Rotation R, `w_H ~ R w_G` (Kabsch): `M = sum q w_H w_G^T = U S V^T`, `R = U diag(1, 1, det) V^T`."""
    t_s = pairing.camera.t_s[good]
    w_g = pairing.camera.values[good]
    w_h = pairing.spline(t_s + line.at(t_s))
    w_h, w_g = w_h - np.median(w_h, axis=0), w_g - np.median(w_g, axis=0)
    soft = 1.0 / np.sqrt(1.0 + (w_g**2).sum(axis=1) / ROTATION_SOFT_RAD_PER_S**2)
    u, _, vt = np.linalg.svd((w_h * soft[:, None]).T @ w_g)
    return u @ np.diag([1.0, 1.0, np.sign(np.linalg.det(u @ vt))]) @ vt


def settle(pairing: Pairing, line: Line, good: Mask) -> tuple[Line, Floats]:
    """Move the whole line and turn the rotation together until both rest.

    In periodic motion a small shift looks much like a small turn: fitted in turns, they creep towards the truth.
    """
    for _ in range(SETTLE_STEPS):
        rotation = fit_rotation(pairing, line, good)
        normal, gradient = _shift_and_turn(pairing, line, rotation, good)
        change = -float((np.linalg.pinv(normal) @ gradient)[0])
        line = replace(line, tau_s=line.tau_s + float(np.clip(change, -LARGEST_STEP_S, LARGEST_STEP_S)))
        if abs(change) < 1e-7:
            break
    return line, fit_rotation(pairing, line, good)


def _shift_and_turn(pairing: Pairing, line: Line, rotation: Floats, good: Mask) -> tuple[Floats, Floats]:
    """Normal matrix (4, 4) and gradient (4,) of `r = S_H(t + tau) - R w_G - mean` in tau and three small turns."""
    t_s = pairing.camera.t_s[good]
    w_g = pairing.camera.values[good] @ rotation.T
    w_h, slope = pairing.spline(t_s + line.at(t_s)), pairing.spline(t_s + line.at(t_s), 1)
    w_h, w_g, slope = (x - x.mean(axis=0) for x in (w_h, w_g, slope))
    columns = [slope, *(-np.cross(axis, w_g) for axis in np.eye(3))]
    jacobian = np.stack([column.ravel() for column in columns], axis=1)
    soft = np.repeat(1.0 / (1.0 + (w_g**2).sum(axis=1) / ROTATION_SOFT_RAD_PER_S**2) ** 0.5, 3)[:, None]
    return jacobian.T @ (soft * jacobian), (soft * jacobian).T @ (w_h - w_g).ravel()


def window_lags(pairing: Pairing, line: Line, rotation: Floats, span_s: tuple[float, float]) -> Lags:
    """Lag of every window of clip(T/8, 1.5, 20) s, half overlapping, with the line's slope held."""
    seconds = span_s[1] - span_s[0]
    width = float(np.clip(seconds / 8.0, 1.5, 20.0))
    starts = np.arange(span_s[0], span_s[1] - width + 1e-9, width / 2.0)
    starts = starts if len(starts) else np.array([span_s[0]])
    turned = pairing.camera.values @ rotation.T
    rows = [_one_lag(pairing, line, turned, float(start), width) for start in starts]
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
    shift = 0.0
    for step in range(NEWTON_STEPS + 1):
        t_h = t_s + line.at(t_s) + shift
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


def _evidence(pairing: Pairing, line: Line, lags: Lags, good: Mask, span_s: tuple[float, float]) -> Fine:
    rotation = fit_rotation(pairing, line, good)
    normal, _ = _shift_and_turn(pairing, line, rotation, good)
    t_s = pairing.camera.t_s
    w_g = pairing.camera.values[good] @ rotation.T
    w_h = pairing.spline(t_s[good] + line.at(t_s[good]))
    slope = pairing.spline(t_s[good] + line.at(t_s[good]), 1)
    w_h, w_g = w_h - w_h.mean(axis=0), w_g - w_g.mean(axis=0)
    correlation = float((w_h * w_g).sum() / np.sqrt((w_h**2).sum() * (w_g**2).sum() + 1e-30))
    rows = np.flatnonzero(good)
    halves = [np.zeros_like(good), np.zeros_like(good)]
    for half, part in zip(halves, np.array_split(rows, 2), strict=True):
        half[part] = True
    noise = np.sqrt(np.mean((w_h - w_g) ** 2))
    kept_t, kept_tau = lags.t_s[lags.kept], lags.tau_s[lags.kept]
    size, z, at = step_test(lags)
    return Fine(
        line=line,
        lags=lags,
        coupling=float(np.sqrt(max(np.linalg.pinv(normal)[0, 0] * normal[0, 0], 1.0))),
        rotation=rotation,
        rotation_halves_deg=_angle_deg(*(fit_rotation(pairing, line, half) for half in halves)),
        correlation=correlation,
        scale=float(np.sqrt((w_h**2).sum() / max((w_g**2).sum(), 1e-30))),
        residual_rms_s=float(np.sqrt(np.mean((kept_tau - line.at(kept_t)) ** 2)))
        if len(kept_t)
        else float("nan"),
        cramer_rao_s=float(noise / np.sqrt(max((slope**2).sum(), 1e-30))),
        step_s=size,
        step_z=z,
        step_t_s=at,
        overlap_s=span_s,
        bend_s=bend(lags, line, span_s),
    )


def _angle_deg(a: Floats, b: Floats) -> float:
    return float(np.rad2deg(np.arccos(np.clip((np.trace(a.T @ b) - 1.0) / 2.0, -1.0, 1.0))))

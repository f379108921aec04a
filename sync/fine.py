"""Fine alignment at 100 Hz: the rotation, the curve through the window lags, its jumps and its bend."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from sync.line import (
    DRIFT_PRIOR,
    DriftPrior,
    Lags,
    Line,
    Shape,
    Step,
    bend,
    cost_of,
    fit_line,
    step_test,
    wants_curve,
)
from sync.pairing import FINE_HZ, Mask, Pairing
from sync.verdict import THRESHOLDS
from sync.windows import LARGEST_STEP_S, place_jump, window_lags

Floats = npt.NDArray[np.floating]

ROTATION_SOFT_RAD_PER_S = np.deg2rad(40.0)
ROUNDS = 3
SETTLE_STEPS = 10
SHORT_CLIP_S = 120.0
MOST_JUMPS = 6
MOUNT_S = 10.0
STEP_GAIN = 0.85
JUMP_REACH = 1.0

Jumps = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Fine:
    """The fitted curve with all its evidence."""

    line: Line
    lags: Lags
    coupling: float  # how much worse the shift is known because the rotation is fitted too, at least 1
    rotation: Floats
    rotation_halves_deg: float
    correlation: float
    scale: float
    residual_rms_s: float
    cramer_rao_s: float
    step: Step  # the strongest jump that is left
    overlap_s: tuple[float, float]
    bend_s: Floats  # what one degree more would change at start, middle, end

    def refitted(self, prior: DriftPrior) -> Fine:
        """The same windows with another prior of the drift."""
        line = fit_line(self.lags, self.line.shape, prior)
        return replace(
            self, line=line, step=step_test(self.lags, line), bend_s=_bends(self.lags, line, self.overlap_s)
        )

    def over(self, span_s: tuple[float, float]) -> Fine:
        """The same curve, spoken of over another span of media time."""
        return replace(self, overlap_s=span_s, bend_s=_bends(self.lags, self.line, span_s))


def fine_alignment(
    pairing: Pairing, *, tau_s: float, rate: float, t_ref_s: float, jumps: Jumps = ()
) -> Fine | None:
    """Refine the coarse lag; None when no window can be used.

    `tau_s` is the lag at media time `t_ref_s` (before any of `jumps`); `rate - 1` the drift to begin with.
    """
    t_s = pairing.camera.t_s
    start = Line.start(t_ref_s, tau_s, rate - 1.0, jumps)
    good = pairing.overlap(start.at(t_s))
    if good.sum() < FINE_HZ:
        return None
    first, last = float(t_s[good][0]), float(t_s[good][-1])
    middle = 0.5 * (first + last)
    line = Line.start(middle, tau_s + (rate - 1.0) * (middle - t_ref_s), rate - 1.0, jumps)
    prior = DriftPrior(rate - 1.0, DRIFT_PRIOR if last - first < SHORT_CLIP_S else float("inf"))
    refined = _refine(pairing, line, prior, (first, last))
    if refined is None:
        return None
    line, lags, rotation = refined
    line, lags = _reshape(pairing, line, lags, rotation, prior, (first, last))
    line, lags = _follow_mount(pairing, line, lags, prior, (first, last))
    good = pairing.overlap(line.at(t_s))
    return _evidence(pairing, line, lags, good, (first, last)) if good.sum() >= FINE_HZ else None


def _refine(
    pairing: Pairing, line: Line, prior: DriftPrior, span_s: tuple[float, float], rounds: int = ROUNDS
) -> tuple[Line, Lags, Floats] | None:
    """Rotation, window lags and curve in turns, the shape held."""
    lags: Lags | None = None
    rotation: Floats = np.eye(3)
    shape = line.shape
    for _ in range(rounds):
        good = pairing.overlap(line.at(pairing.camera.t_s))
        if good.sum() < FINE_HZ:
            return None
        line, rotation = settle(pairing, line, good)
        lags = window_lags(pairing, line, pairing.camera.values @ rotation.T, span_s)
        if lags.kept.sum() < max(3, shape.size):
            break
        line = fit_line(lags, shape, prior)
    assert lags is not None
    return line, lags, rotation


def _follow_mount(
    pairing: Pairing, line: Line, lags: Lags, prior: DriftPrior, span_s: tuple[float, float]
) -> tuple[Line, Lags]:
    """When the camera turned on the head: lags with a rotation for every stretch, since a wrong one pulls at them."""
    good = pairing.overlap(line.at(pairing.camera.t_s))
    if good.sum() < FINE_HZ or _halves_deg(pairing, line, good) <= THRESHOLDS["mount_most_deg"]:
        return line, lags
    for _ in range(2):
        turned = np.zeros_like(pairing.camera.values)
        for rows in np.array_split(np.flatnonzero(good), max(2, round((span_s[1] - span_s[0]) / MOUNT_S))):
            part = np.zeros_like(good)
            part[rows] = True
            turned[part] = pairing.camera.values[part] @ settle(pairing, line, part)[1].T
        found = window_lags(pairing, line, turned, span_s)
        if found.kept.sum() < line.shape.size + 3:
            break
        line, lags = fit_line(found, line.shape, prior), found
    return line, lags


def _halves_deg(pairing: Pairing, line: Line, good: Mask) -> float:
    """How much the rotations of the first and of the second half differ."""
    halves = [np.zeros_like(good), np.zeros_like(good)]
    for half, part in zip(halves, np.array_split(np.flatnonzero(good), 2), strict=True):
        half[part] = True
    return _angle_deg(*(fit_rotation(pairing, line, half) for half in halves))


def _reshape(
    pairing: Pairing,
    line: Line,
    lags: Lags,
    rotation: Floats,
    prior: DriftPrior,
    span_s: tuple[float, float],
) -> tuple[Line, Lags]:
    """Add jumps and a quadratic as long as the windows ask for them; whichever explains more goes first."""
    for _ in range(MOST_JUMPS + 1):
        step = step_test(lags, line)
        curved = wants_curve(lags, line, prior)
        shape = replace(line.shape, degree=line.shape.degree + 1)
        jumps = step.z > THRESHOLDS["step_z_most"] and abs(step.size_s) * 1e3 > THRESHOLDS["step_most_ms"]
        if jumps and len(line.shape.breaks_s) < MOST_JUMPS:
            rival = cost_of(lags, shape, prior) if curved else cost_of(lags, line.shape, prior)
            if step.cost < STEP_GAIN * rival:
                found = _refine_jump(pairing, line, step, lags, rotation, prior, span_s)
                if found is not None:
                    line, lags, rotation = found
                    continue
        if not curved:
            break
        line = fit_line(lags, shape, prior)
        again = _refine(pairing, line, prior, span_s, rounds=2)
        if again is not None:
            line, lags, rotation = again
    return line, lags


def _refine_jump(
    pairing: Pairing,
    line: Line,
    step: Step,
    lags: Lags,
    rotation: Floats,
    prior: DriftPrior,
    span_s: tuple[float, float],
) -> tuple[Line, Lags, Floats] | None:
    """Place a jump between two windows to the cell, and fit again with a piece on each side."""
    t, _, _ = lags.of_kept()
    degree, breaks = line.shape.degree, line.shape.breaks_s
    inner = sorted([span_s[0], *breaks, span_s[1]])
    at, found = step.t_s, None
    for _ in range(2):
        shape = Shape(line.t_mid_s, degree, tuple(sorted([*breaks, at])))
        k = shape.breaks_s.index(at)
        fitted = fit_line(lags, shape, prior)
        size = fitted.jumps[k][1]
        before = replace(fitted, beta=fitted.beta * (np.arange(shape.size) != degree + 1 + k))
        low = max(b for b in inner if b < at)
        high = min(b for b in inner if b > at)
        reach = JUMP_REACH * float(np.median(np.diff(t))) * 2.5
        at = place_jump(pairing, before, rotation, size, (max(low, at - reach), min(high, at + reach)))
        shape = Shape(line.t_mid_s, degree, tuple(sorted([*breaks, at])))
        start = replace(fitted, shape=shape)
        found = _refine(pairing, start, prior, span_s, rounds=2)
        if found is None or found[1].kept.sum() < shape.size + 2:
            return None
        lags = found[1]
    return found


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
        line = line.moved(float(np.clip(change, -LARGEST_STEP_S, LARGEST_STEP_S)))
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


def _evidence(pairing: Pairing, line: Line, lags: Lags, good: Mask, span_s: tuple[float, float]) -> Fine:
    rotation = fit_rotation(pairing, line, good)
    normal, _ = _shift_and_turn(pairing, line, rotation, good)
    t_s = pairing.camera.t_s
    w_g = pairing.camera.values[good] @ rotation.T
    w_h = pairing.spline(t_s[good] + line.at(t_s[good]))
    slope = pairing.spline(t_s[good] + line.at(t_s[good]), 1)
    w_h, w_g = w_h - w_h.mean(axis=0), w_g - w_g.mean(axis=0)
    correlation = float((w_h * w_g).sum() / np.sqrt((w_h**2).sum() * (w_g**2).sum() + 1e-30))
    noise = np.sqrt(np.mean((w_h - w_g) ** 2))
    kept_t, kept_tau = lags.t_s[lags.kept], lags.tau_s[lags.kept]
    return Fine(
        line=line,
        lags=lags,
        coupling=float(np.sqrt(max(np.linalg.pinv(normal)[0, 0] * normal[0, 0], 1.0))),
        rotation=rotation,
        rotation_halves_deg=_halves_deg(pairing, line, good),
        correlation=correlation,
        scale=float(np.sqrt((w_h**2).sum() / max((w_g**2).sum(), 1e-30))),
        residual_rms_s=float(np.sqrt(np.mean((kept_tau - line.at(kept_t)) ** 2)))
        if len(kept_t)
        else float("nan"),
        cramer_rao_s=float(noise / np.sqrt(max((slope**2).sum(), 1e-30))),
        step=step_test(lags, line),
        overlap_s=span_s,
        bend_s=_bends(lags, line, span_s),
    )


def _bends(lags: Lags, line: Line, span_s: tuple[float, float]) -> Floats:
    return bend(lags, line, np.array([span_s[0], 0.5 * (span_s[0] + span_s[1]), span_s[1]]))


def _angle_deg(a: Floats, b: Floats) -> float:
    return float(np.rad2deg(np.arccos(np.clip((np.trace(a.T @ b) - 1.0) / 2.0, -1.0, 1.0))))

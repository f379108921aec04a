"""Fine alignment at 100 Hz: the rotation, the curve through the window lags, its jumps and its bend."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kitchensync.shell.array_types import Floats
from kitchensync.sync.align.verdict import THRESHOLDS, has_turned
from kitchensync.sync.fit.line import DriftPrior, Lags, Line, Shape, fit_line
from kitchensync.sync.fit.pairing import FINE_HZ, Pairing
from kitchensync.sync.fit.shape_tests import ClockStep, cost_of, step_test, wants_curve
from kitchensync.sync.fit.whole_fit import least_jump_sigmas, whole_fit
from kitchensync.sync.fit.windows import (
    fit_rotation,
    place_jump,
    settle,
    shift_and_turn,
    turn_of_halves_deg,
    window_lags,
)

ROUNDS = 3
DRIFT_PRIOR = 30e-6  # the data alone leave 5 to 40 ppm in a short clip
SHORT_CLIP_S = 120.0  # in a shorter clip the drift is hardly measurable, and clocks are linear
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
    rotation: Floats
    turn_deg: float  # of the camera on the head, second half against first
    turn_sigma_deg: float
    correlation: float
    scale: float
    residual_rms_s: float
    cramer_rao_s: float
    step: ClockStep  # the strongest remaining jump
    overlap_s: tuple[float, float]
    coupling: float  # factor of the shift's error because the rotation is fitted too, at least 1
    is_whole: bool = False  # one fit over all cells instead of a curve through windows


def fine_alignment(
    pairing: Pairing, *, tau_s: float, rate: float, t_ref_s: float, jumps: Jumps = ()
) -> Fine | None:
    """Refine the coarse lag; None without a usable window.

    `tau_s` is the lag at media time `t_ref_s` (before any of `jumps`); `rate - 1` is the initial drift.
    """
    t_s = pairing.camera.t_s
    start = Line.start(t_ref_s, tau_s, rate - 1.0, jumps)
    good = pairing.overlap(start.at(t_s))
    if good.sum() < FINE_HZ:
        return None
    span_s = float(t_s[good][0]), float(t_s[good][-1])
    middle = 0.5 * (span_s[0] + span_s[1])
    line = Line.start(middle, tau_s + (rate - 1.0) * (middle - t_ref_s), rate - 1.0, jumps)
    is_short = span_s[1] - span_s[0] < SHORT_CLIP_S
    prior = DriftPrior(rate - 1.0, DRIFT_PRIOR if is_short and rate == 1.0 else float("inf"))
    refined = _refine(pairing, line, prior, span_s)
    if refined is None:
        return None
    line, lags, rotation = refined
    line, lags = _reshape(pairing, line, lags, rotation, prior, span_s, may_bend=not is_short)
    fine = _evidence(pairing, line, lags, span_s)
    if fine is None:
        return None
    if has_turned(fine.turn_deg, fine.turn_sigma_deg):
        return _evidence(pairing, *_follow_mount(pairing, line, lags, prior, span_s), span_s)
    if is_short and line.shape.size == 2 and lags.kept.sum() > line.shape.size:
        # instead of windows one fit over all cells of the clip
        good = pairing.overlap(fine.line.at(pairing.camera.t_s))
        line = whole_fit(pairing, fine.line, fine.lags, fine.rotation, good, prior)
        again = _evidence(pairing, line, fine.lags, fine.overlap_s)
        return replace(again, coupling=1.0, is_whole=True) if again is not None else fine
    return fine


def _refine(
    pairing: Pairing, line: Line, prior: DriftPrior, span_s: tuple[float, float], rounds: int = ROUNDS
) -> tuple[Line, Lags, Floats] | None:
    """Fit rotation, window lags and curve alternately, with a fixed shape."""
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
    """Fit a rotation for every stretch of a camera that turned on the head, as a wrong one shifts the lags."""
    good = pairing.overlap(line.at(pairing.camera.t_s))
    for _ in range(2):
        turned = np.zeros_like(pairing.camera.values)
        for rows in np.array_split(np.flatnonzero(good), max(2, round((span_s[1] - span_s[0]) / MOUNT_S))):
            part = np.zeros_like(good)
            part[rows] = True
            turned[part] = pairing.camera.values[part] @ settle(pairing, line, part)[1].T
        new_lags = window_lags(pairing, line, turned, span_s)
        if new_lags.kept.sum() < line.shape.size + 3:
            break
        line, lags = fit_line(new_lags, line.shape, prior), new_lags
    return line, lags


def _reshape(
    pairing: Pairing,
    line: Line,
    lags: Lags,
    rotation: Floats,
    prior: DriftPrior,
    span_s: tuple[float, float],
    *,
    may_bend: bool,
) -> tuple[Line, Lags]:
    """Add jumps and a quadratic while the windows support them; the one that explains more is added first."""
    z_most = THRESHOLDS["step_z_most"]
    for _ in range(MOST_JUMPS + 1):
        step = step_test(lags, line)
        curved = may_bend and wants_curve(lags, line, prior)
        shape = replace(line.shape, degree=line.shape.degree + 1)
        jumps = step.z > z_most and abs(step.size_s) * 1e3 > THRESHOLDS["step_most_ms"]
        if jumps and len(line.shape.breaks_s) < MOST_JUMPS:
            rival = cost_of(lags, shape, prior) if curved else cost_of(lags, line.shape, prior)
            if step.cost < STEP_GAIN * rival:
                with_jump = _refine_jump(pairing, line, step, lags, rotation, prior, span_s)
                if with_jump is not None:
                    good = pairing.overlap(with_jump[0].at(pairing.camera.t_s))
                    # a jump in the few windows of a short clip must be confirmed by all its cells
                    if may_bend or least_jump_sigmas(pairing, with_jump[0], with_jump[2], good) > z_most:
                        line, lags, rotation = with_jump
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
    step: ClockStep,
    lags: Lags,
    rotation: Floats,
    prior: DriftPrior,
    span_s: tuple[float, float],
) -> tuple[Line, Lags, Floats] | None:
    """Place a jump between two windows at a cell, and fit again with a piece on each side."""
    t, _, _ = lags.of_kept()
    degree, breaks = line.shape.degree, line.shape.breaks_s
    inner = sorted([span_s[0], *breaks, span_s[1]])
    at, refined = step.t_s, None
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
        refined = _refine(pairing, start, prior, span_s, rounds=2)
        if refined is None or refined[1].kept.sum() < shape.size + 2:
            return None
        lags = refined[1]
        counts, _ = np.histogram(lags.of_kept()[0], bins=[span_s[0], *shape.breaks_s, span_s[1]])
        if (counts == 0).any():  # a piece between two jumps has no window
            return None
    return refined


def _evidence(pairing: Pairing, line: Line, lags: Lags, span_s: tuple[float, float]) -> Fine | None:
    """Return the evidence of a curve; None if the overlap is too short."""
    t_s = pairing.camera.t_s
    good = pairing.overlap(line.at(t_s))
    if good.sum() < FINE_HZ:
        return None
    rotation = fit_rotation(pairing, line, good)
    normal, _ = shift_and_turn(pairing, line, rotation, good)
    w_g = pairing.camera.values[good] @ rotation.T
    w_h = pairing.spline(t_s[good] + line.at(t_s[good]))
    slope = pairing.spline(t_s[good] + line.at(t_s[good]), 1)
    w_h, w_g = w_h - w_h.mean(axis=0), w_g - w_g.mean(axis=0)
    noise = np.sqrt(np.mean((w_h - w_g) ** 2))
    kept_t, kept_tau = lags.t_s[lags.kept], lags.tau_s[lags.kept]
    turn_deg, turn_sigma_deg = turn_of_halves_deg(pairing, line, good)
    return Fine(
        line=line,
        lags=lags,
        rotation=rotation,
        turn_deg=turn_deg,
        turn_sigma_deg=turn_sigma_deg,
        correlation=float((w_h * w_g).sum() / np.sqrt((w_h**2).sum() * (w_g**2).sum() + 1e-30)),
        scale=float(np.sqrt((w_h**2).sum() / max((w_g**2).sum(), 1e-30))),
        residual_rms_s=float(np.sqrt(np.mean((kept_tau - line.at(kept_t)) ** 2)))
        if len(kept_t)
        else float("nan"),
        cramer_rao_s=float(noise / np.sqrt(max((slope**2).sum(), 1e-30))),
        step=step_test(lags, line),
        overlap_s=span_s,
        coupling=float(np.sqrt(max(np.linalg.pinv(normal)[0, 0] * normal[0, 0], 1.0))),
    )

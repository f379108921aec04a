"""Tests whether the fit of a clock needs a jump, or one more polynomial degree. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kitchensync.sync.fit.line import (
    LEAST_CHI,
    DriftPrior,
    Floats,
    Lags,
    Line,
    Problem,
    Shape,
    cross_validated,
    fit_line,
    scatter_of,
)

BEND_PRIOR_PER_S = 1e-7  # a crystal that warms by degrees a minute changes its rate by 0.2 ppm a second
CURVE_SIGMAS = 5.0
CURVE_LEAST_S = 0.2e-3
CURVE_GAIN = 0.2  # significance alone let in a spurious term that cost 1.4 ms on a quiet recording
MOST_DEGREE = 2  # a cubic that the data did not ask for cost 1.4 ms on a quiet recording


@dataclass(frozen=True, slots=True)
class ClockStep:
    """The strongest jump a test found: size (s), z, media time, and how well it explains the lags."""

    size_s: float = 0.0
    z: float = 0.0
    t_s: float = float("nan")
    cost: float = float("inf")


def step_test(lags: Lags, line: Line) -> ClockStep:
    """Curve + Heaviside at every split, noise scale from differences of neighbours."""
    t, tau, weights = lags.of_kept()
    if len(t) < max(6, line.shape.size + 4):
        return ClockStep()
    rest = tau - line.at(t)
    change = np.diff(rest) / np.sqrt(1.0 / weights[1:] + 1.0 / weights[:-1])
    noise = scatter_of(lags, weights, 1.4826 * float(np.median(np.abs(change - np.median(change)))), 0.3)
    known, best = line.shape.basis(t), ClockStep()
    known = known / np.maximum(np.abs(known).max(axis=0), 1e-12)
    for split in range(2, len(t) - 1):
        x = np.column_stack([known, np.arange(len(t)) >= split])
        normal = (x * weights[:, None]).T @ x
        if np.linalg.cond(normal) > 1e14:
            continue
        inverse = np.linalg.inv(normal)
        beta = inverse @ ((x * weights[:, None]).T @ rest)
        z = abs(float(beta[-1])) / (float(np.sqrt(inverse[-1, -1])) * noise)
        if z > best.z:
            cost = float((np.abs(rest - x @ beta) * np.sqrt(weights)).clip(max=10.0 * noise).sum())
            best = ClockStep(float(beta[-1]), z, float(0.5 * (t[split - 1] + t[split])), cost)
    return best


def cost_of(lags: Lags, shape: Shape, prior: DriftPrior) -> float:
    """Sum of absolute residuals of a shape, in window sigmas: comparable with `ClockStep.cost`."""
    t, tau, base = lags.of_kept()
    line = fit_line(lags, shape, prior)
    return float((np.abs(tau - line.at(t)) * np.sqrt(base)).sum())


def wants_curve(lags: Lags, line: Line, prior: DriftPrior) -> bool:
    """Return whether one degree more is real: 5 sigma, 0.2 ms, and 20 % better where it was not fitted."""
    shape = replace(line.shape, degree=line.shape.degree + 1)
    t, _, _ = lags.of_kept()
    if line.shape.degree >= MOST_DEGREE or len(t) < 3 * shape.size:
        return False
    curved = fit_line(lags, shape, prior)
    top = shape.degree
    sigma = max(float(np.sqrt(curved.covariance[top, top])), float(np.std(curved.draws[:, top])), 1e-30)
    effect = float(np.abs(curved.at(t) - line.at(t)).max())
    if abs(curved.beta[top]) < CURVE_SIGMAS * sigma or effect < CURVE_LEAST_S:
        return False
    plain, better = (cross_validated(lags, s, prior) for s in (line.shape, shape))
    return better < (1.0 - CURVE_GAIN) * plain


def bend(lags: Lags, line: Line, where_s: Floats) -> Floats:
    """What one degree more would change at media times `where_s`, beyond its own noise, in seconds.

    Both degrees are fitted to the windows: what these say of a line that was fitted to all cells is not a bend.
    How fast a crystal's rate can change is known: within a minute no scatter of windows may claim more.
    """
    t, _, base = lags.of_kept()
    shape = replace(line.shape, degree=line.shape.degree + 1)
    if len(t) < shape.size + 3:
        return np.zeros(len(where_s))
    weights, scatter = line.weights * base, max(line.chi, LEAST_CHI) ** 2
    rest = replace(lags, tau_s=lags.tau_s - line.at(lags.t_s))
    more, same = (Problem.of(rest, form, DriftPrior()) for form in (shape, line.shape))
    if shape.degree == 2:
        more.prior[2] = scatter * (more.unit[2] / BEND_PRIOR_PER_S) ** 2
    change, noise = more.at(where_s, shape, weights)
    known, known_noise = same.at(where_s, line.shape, weights)
    spare = np.maximum(noise - known_noise, 0.0) * scatter
    return np.maximum(np.abs(change - known) - np.sqrt(spare), 0.0)

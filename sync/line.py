"""The drift line through window lags: robust fit, its error, jumps and bends. All pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating]
Mask = npt.NDArray[np.bool_]

HUBER_K = 1.5
FLOOR_S = 1e-4
DRIFT_PRIOR = 30e-6
RESAMPLES = 200


@dataclass(frozen=True, slots=True)
class Lags:
    """What every window says: middle time (media s), lag tau and its sigma (s), correlation, kept or not."""

    t_s: Floats
    tau_s: Floats
    sigma_s: Floats
    correlation: Floats
    kept: Mask


@dataclass(frozen=True, slots=True)
class Line:
    """`tau(t) = tau_s + drift (t - t_mid)` with its covariance and the bootstrap's lines."""

    t_mid_s: float
    tau_s: float
    drift: float
    covariance: Floats
    draws: Floats  # (RESAMPLES, 2) tau and drift
    weights: Floats
    chi: float

    def at(self, t_s: Floats | float) -> Floats:
        """Lag in seconds at media times."""
        return self.tau_s + self.drift * (np.asarray(t_s, dtype=np.float64) - self.t_mid_s)

    def sigma_s(self, t_s: Floats) -> Floats:
        """Statistical sigma at media times: the larger of bootstrap and regression, without a floor."""
        x = np.column_stack([np.ones(len(t_s)), t_s - self.t_mid_s])
        regression = np.sqrt(np.einsum("ki,ij,kj->k", x, self.covariance, x))
        bootstrap = np.std(self.draws @ x.T, axis=0) if len(self.draws) else regression
        return np.maximum(regression, bootstrap)


def fit_line(lags: Lags, t_mid_s: float, *, drift0: float, short: bool) -> Line:
    """Huber line, weights 1/(sigma^2 + (0.1 ms)^2); short clips hold the drift near `drift0`."""
    t, tau = lags.t_s[lags.kept], lags.tau_s[lags.kept]
    base = 1.0 / (lags.sigma_s[lags.kept] ** 2 + FLOOR_S**2)
    prior = np.array([0.0, 1.0 / DRIFT_PRIOR**2 if short else 0.0])
    x = np.column_stack([np.ones(len(t)), t - t_mid_s])
    weights: Floats = base
    beta: Floats = np.zeros(2)
    for _ in range(20):
        beta = _solve(x, tau, weights, prior, drift0)
        residual = (tau - x @ beta) * np.sqrt(base)
        scale = max(1.4826 * float(np.median(np.abs(residual))), 1.0)
        weights = base * np.minimum(1.0, HUBER_K * scale / np.maximum(np.abs(residual), 1e-12))
    chi = float(np.sqrt(np.mean(((tau - x @ beta) * np.sqrt(base)) ** 2)))
    inverse = np.linalg.pinv((x * weights[:, None]).T @ x + np.diag(prior))
    covariance = inverse * max(chi, 1.0) ** 2
    draws = _bootstrap(x, tau, weights, prior, drift0)
    return Line(t_mid_s, float(beta[0]), float(beta[1]), covariance, draws, weights / base, chi)


def _solve(x: Floats, tau: Floats, weights: Floats, prior: Floats, drift0: float) -> Floats:
    normal = (x * weights[:, None]).T @ x + np.diag(prior)
    target = (x * weights[:, None]).T @ tau + prior * np.array([0.0, drift0])
    return np.linalg.lstsq(normal, target, rcond=None)[0]


def _bootstrap(x: Floats, tau: Floats, weights: Floats, prior: Floats, drift0: float) -> Floats:
    """Refit on drawn pairs of neighbours: half-overlapping windows are not independent."""
    count = len(tau)
    if count < 6:
        return np.empty((0, 2))
    draw = np.random.default_rng(0)
    starts = draw.integers(0, count - 1, size=(RESAMPLES, (count + 1) // 2))
    picks = np.stack([starts, starts + 1], axis=-1).reshape(RESAMPLES, -1)
    return np.array([_solve(x[p], tau[p], weights[p], prior, drift0) for p in picks])


def step_test(lags: Lags) -> tuple[float, float, float]:
    """Strongest jump: size (s), z, media time; line + Heaviside at every split, noise from differences."""
    t, tau = lags.t_s[lags.kept], lags.tau_s[lags.kept]
    if len(t) < 6:
        return 0.0, 0.0, float("nan")
    weights = 1.0 / (lags.sigma_s[lags.kept] ** 2 + FLOOR_S**2)
    change = np.diff(tau) / np.sqrt(1.0 / weights[1:] + 1.0 / weights[:-1])
    noise = max(1.4826 * float(np.median(np.abs(change - np.median(change)))), 0.3)
    best = (0.0, 0.0, float("nan"))
    for split in range(2, len(t) - 1):
        x = np.column_stack([np.ones(len(t)), t - t.mean(), np.arange(len(t)) >= split])
        normal = (x * weights[:, None]).T @ x
        if np.linalg.cond(normal) > 1e14:
            continue
        inverse = np.linalg.inv(normal)
        size = float((inverse @ ((x * weights[:, None]).T @ tau))[2])
        z = abs(size) / (float(np.sqrt(inverse[2, 2])) * noise)
        if z > best[1]:
            best = (size, z, float(0.5 * (t[split - 1] + t[split])))
    return best


def bend(lags: Lags, line: Line, span_s: tuple[float, float]) -> Floats:
    """What a quadratic through the windows would change at start, middle and end, in seconds."""
    t, tau = lags.t_s[lags.kept], lags.tau_s[lags.kept]
    if len(t) < 6:
        return np.zeros(3)
    weights = line.weights / (lags.sigma_s[lags.kept] ** 2 + FLOOR_S**2)
    residual = tau - line.at(t)
    unit = max(span_s[1] - span_s[0], 1e-9)
    root = np.sqrt(weights)
    x = np.vander((t - line.t_mid_s) / unit, 3, increasing=True)
    beta = np.linalg.lstsq(x * root[:, None], residual * root, rcond=None)[0]
    where = (np.array([span_s[0], line.t_mid_s, span_s[1]]) - line.t_mid_s) / unit
    return np.abs(np.vander(where, 3, increasing=True) @ beta)

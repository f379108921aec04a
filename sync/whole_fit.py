"""Short clips: one fit over all cells, where windows are too few and too short to speak for themselves. All pure.

A window of 1.5 s has lost most of the slow motion with its mean, and the fourteen of a clip of twelve seconds tell
their own scatter badly. Shift, drift and rotation from all cells at once come near the limit that the noise sets, and
their error follows from the noise instead of from the scatter of a few windows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.spatial.transform import Rotation

from sync.line import DriftPrior, Lags, Line
from sync.pairing import FINE_HZ, Mask, Pairing
from sync.rotation import soft_weights
from sync.windows import LARGEST_STEP_S, LONG_RUN_S

Floats = npt.NDArray[np.floating]

STEPS = 8
SETTLED_S = 1e-8
DRIFT = 1  # column of the drift among shift, drift and three small turns
TOLERATED_SCATTER = 2.5  # windows this short scatter up to so many of their own error bars


@dataclass(frozen=True, slots=True)
class _Linear:
    """Residual `r = S_H(t + tau) - R w_G - mean` (3, n) and its derivatives (3, n, 5), with the weights (n,)."""

    residual: Floats
    jacobian: Floats
    weights: Floats

    @classmethod
    def of(cls, pairing: Pairing, line: Line, rotation: Floats, good: Mask) -> _Linear:
        t_s = pairing.camera.t_s[good]
        w_g = pairing.camera.values[good] @ rotation.T
        w_h, slope = pairing.spline(t_s + line.at(t_s)), pairing.spline(t_s + line.at(t_s), 1)
        weights = soft_weights(w_g)
        drift = slope * (t_s - line.t_mid_s)[:, None]
        columns = [slope, drift, *(-np.cross(axis, w_g) for axis in np.eye(3))]
        stacked = np.stack([_centred(column, weights).T for column in columns], axis=2)
        return cls(_centred(w_h - w_g, weights).T, stacked, weights)

    @property
    def normal(self) -> Floats:
        return np.einsum("n,anp,anq->pq", self.weights, self.jacobian, self.jacobian)

    @property
    def gradient(self) -> Floats:
        return np.einsum("n,anp,an->p", self.weights, self.jacobian, self.residual)

    def score_variance(self) -> Floats:
        """Variance of the gradient (5, 5) when the noise is coloured but alike everywhere; Bartlett over 0.5 s."""
        pulled = self.weights[:, None] * self.jacobian
        count = pulled.shape[1]
        total = np.zeros((pulled.shape[2],) * 2)
        for k, share in _bartlett(count):
            alike = float((self.residual[:, k:] * self.residual[:, : count - k]).sum()) / (3 * count)
            moments = np.einsum("anp,anq->pq", pulled[:, k:], pulled[:, : count - k])
            total += share * alike * (moments + moments.T if k else moments)
        return total

    def score_variance_as_seen(self) -> Floats:
        """The same from the gradient's own parts: larger where the noise grows with the motion."""
        parts = np.einsum("n,anp,an->np", self.weights, self.jacobian, self.residual)
        parts = parts - parts.mean(axis=0)
        total = np.zeros((parts.shape[1],) * 2)
        for k, share in _bartlett(len(parts)):
            moments = parts[k:].T @ parts[: len(parts) - k]
            total += share * (moments + moments.T if k else moments)
        return total


def whole_fit(
    pairing: Pairing, line: Line, lags: Lags, rotation: Floats, good: Mask, prior: DriftPrior
) -> Line:
    """Refine a straight `line` by Gauss-Newton over shift, drift and rotation; its error replaces the windows'."""
    held = 0.0
    for step in range(STEPS):
        linear = _Linear.of(pairing, line, rotation, good)
        normal = linear.normal
        if step < 2:  # how strongly the prior pulls depends on the noise, known once the rotation rests
            held = float(linear.score_variance()[DRIFT, DRIFT] / normal[DRIFT, DRIFT]) / prior.sigma**2
        change, _ = _solve(normal, linear.gradient, held, prior.drift - line.drift)
        line = replace(
            line, beta=line.beta + np.clip(change[:2], -LARGEST_STEP_S, LARGEST_STEP_S), draws=line.draws[:0]
        )
        rotation = Rotation.from_rotvec(change[2:]).as_matrix() @ rotation
        if step > 1 and abs(change[0]) < SETTLED_S:
            break
    t_s, tau_s, base = lags.of_kept()
    away = tau_s - line.at(t_s)
    return replace(
        line,
        covariance=_covariance(_Linear.of(pairing, line, rotation, good), held, prior)
        * _scatter(away / lags.sigma_s[lags.kept]),
        weights=np.ones(len(base)),
        chi=float(np.sqrt(np.mean(away**2 * base))),
    )


def _solve(normal: Floats, gradient: Floats, held: float, away: float) -> tuple[Floats, Floats]:
    """Gauss-Newton step with the drift drawn to its prior by `held`, and the inverse of the normal matrix."""
    pull = np.zeros(len(normal))
    pull[DRIFT] = held
    inverse = np.linalg.pinv(normal + np.diag(pull), hermitian=True)
    return inverse @ (pull * away - gradient), inverse


def _covariance(linear: _Linear, held: float, prior: DriftPrior) -> Floats:
    """Covariance of shift and drift (2, 2): noise alike everywhere, or as seen when that is larger."""
    _, inverse = _solve(linear.normal, linear.gradient, held, 0.0)
    drawn = np.zeros_like(inverse)
    drawn[DRIFT, DRIFT] = held**2 * prior.sigma**2 if held else 0.0
    alike, seen = (
        (inverse @ (variance + drawn) @ inverse)[:2, :2]
        for variance in (linear.score_variance(), linear.score_variance_as_seen())
    )
    return alike * max(1.0, float(np.mean(np.diag(seen) / np.maximum(np.diag(alike), 1e-30))))


def _scatter(z: Floats) -> float:
    """Factor of the variance when the windows scatter far beyond their own error bars: a clock that is no line."""
    return max(1.0, float(np.mean(z**2)) / TOLERATED_SCATTER**2) if len(z) else 1.0


def _centred(x: Floats, weights: Floats) -> Floats:
    return x - (weights[:, None] * x).sum(axis=0) / weights.sum()


def _bartlett(count: int) -> list[tuple[int, float]]:
    lags = min(int(LONG_RUN_S * FINE_HZ), count - 1)
    return [(k, 1.0 - k / (lags + 1.0)) for k in range(lags + 1)]

"""The clock's curve as data: what windows say, its form, and the fitted curve with its error. All pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sensors.array_types import Floats, Mask

FLOOR_S = 1e-4


@dataclass(frozen=True, slots=True)
class Lags:
    """What every window says: middle time (media s), lag tau and its sigma (s), correlation, kept or not."""

    t_s: Floats
    tau_s: Floats
    sigma_s: Floats
    correlation: Floats
    kept: Mask

    def of_kept(self) -> tuple[Floats, Floats, Floats]:
        """Times, lags and base weights 1/(sigma^2 + (0.1 ms)^2) of the kept windows."""
        base = 1.0 / (self.sigma_s[self.kept] ** 2 + FLOOR_S**2)
        return self.t_s[self.kept], self.tau_s[self.kept], base


@dataclass(frozen=True, slots=True)
class DriftPrior:
    """What is known of the drift before: short clips hardly tell it themselves."""

    drift: float = 0.0
    sigma: float = float("inf")


@dataclass(frozen=True, slots=True)
class Shape:
    """Form of the curve: polynomial `degree` around `t_mid_s`, with steps just after the media times `breaks_s`."""

    t_mid_s: float
    degree: int = 1
    breaks_s: tuple[float, ...] = ()

    @property
    def size(self) -> int:
        """How many numbers it has."""
        return self.degree + 1 + len(self.breaks_s)

    def basis(self, t_s: Floats | float) -> Floats:
        """Columns 1, t - t_mid, its square ..., then one step a break, (n, size)."""
        t = np.atleast_1d(np.asarray(t_s, dtype=np.float64))
        steps = t[:, None] > np.array(self.breaks_s)[None, :]
        return np.hstack([np.vander(t - self.t_mid_s, self.degree + 1, increasing=True), steps])


@dataclass(frozen=True, slots=True)
class Line:
    """`tau(t) = basis(t) . beta` with its covariance and the bootstrap's draws; most often a straight line."""

    shape: Shape
    beta: Floats
    covariance: Floats
    draws: Floats  # (resamples, size); none where the covariance says it all
    weights: Floats
    chi: float

    @classmethod
    def start(
        cls, t_mid_s: float, tau_s: float, drift: float, jumps: tuple[tuple[float, float], ...]
    ) -> Line:
        """A curve to begin with; `jumps` are (media s, size s)."""
        shape = Shape(t_mid_s, 1, tuple(at for at, _ in jumps))
        beta = np.array([tau_s, drift, *(size for _, size in jumps)])
        return cls(shape, beta, np.zeros((shape.size,) * 2), np.empty((0, shape.size)), np.empty(0), 0.0)

    @property
    def t_mid_s(self) -> float:
        """Media time around which the polynomial is written."""
        return self.shape.t_mid_s

    @property
    def tau_s(self) -> float:
        """Polynomial at `t_mid_s`, before any jump."""
        return float(self.beta[0])

    @property
    def drift(self) -> float:
        """Slope at `t_mid_s`."""
        return float(self.beta[1])

    @property
    def coef(self) -> tuple[float, ...]:
        """Coefficients of the polynomial, lowest first."""
        return tuple(float(b) for b in self.beta[: self.shape.degree + 1])

    @property
    def jumps(self) -> tuple[tuple[float, float], ...]:
        """Every jump: the last media time before it, and its size in s."""
        sizes = self.beta[self.shape.degree + 1 :]
        return tuple((at, float(size)) for at, size in zip(self.shape.breaks_s, sizes, strict=True))

    def at(self, t_s: Floats | float) -> Floats:
        """Lag in seconds at media times."""
        tau = self.shape.basis(t_s) @ self.beta
        return tau if np.ndim(t_s) else tau[0]

    def moved(self, by_s: float) -> Line:
        """The same curve at a lag `by_s` larger."""
        return replace(self, beta=self.beta + by_s * (np.arange(len(self.beta)) == 0))

    def sigma_s(self, t_s: Floats) -> Floats:
        """Statistical sigma at media times: the larger of bootstrap and regression, without a floor."""
        x = self.shape.basis(t_s)
        regression = np.sqrt(np.maximum(np.einsum("ki,ij,kj->k", x, self.covariance, x), 0.0))
        bootstrap = np.std(self.draws @ x.T, axis=0) if len(self.draws) else regression
        return np.maximum(regression, bootstrap)

    def ends_correlation(self, first_s: float, last_s: float) -> float:
        """How far the errors at two media times go together, -1 to 1, by the covariance."""
        a, b = self.shape.basis(np.array([first_s, last_s]))
        own = float(a @ self.covariance @ a) * float(b @ self.covariance @ b)
        return float(np.clip(a @ self.covariance @ b / np.sqrt(own), -1.0, 1.0)) if own > 0.0 else 1.0

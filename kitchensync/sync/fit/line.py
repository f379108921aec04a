"""The clock's curve as data: what windows say, its form, and the fitted curve with its error. All pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from kitchensync.shell.array_types import Floats, Mask

FLOOR_S = 1e-4  # a window with a tiny error bar must not decide the curve alone


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


HUBER_K = 1.5
RESAMPLES = 200
LEAST_CHI = 0.05
TRUSTED_WINDOWS = 8.0  # with fewer windows, their own error bars count more than their scatter
BLOCKS = 10  # whole blocks are left out, as half-overlapping neighbours would predict each other


@dataclass(frozen=True, slots=True)
class Problem:
    """Weighted least squares in units that keep the normal matrix well conditioned."""

    x: Floats
    y: Floats
    unit: Floats  # beta = unit * solution
    prior: Floats
    target: Floats

    @classmethod
    def of(cls, lags: Lags, shape: Shape, prior: DriftPrior) -> Problem:
        """The kept windows' problem for one shape of the curve."""
        t, tau, _ = lags.of_kept()
        x = shape.basis(t)
        unit = 1.0 / np.maximum(np.abs(x).max(axis=0), 1e-12)
        strength, target = np.zeros(shape.size), np.zeros(shape.size)
        strength[1] = (unit[1] / prior.sigma) ** 2
        target[1] = prior.drift / unit[1]
        return cls(x * unit, tau, unit, strength, target)

    def solve(self, weights: Floats, rows: npt.NDArray[np.intp] | slice = slice(None)) -> Floats:
        """Solution in its own units, from all windows or only some."""
        x, y, w = self.x[rows], self.y[rows], weights[rows]
        normal = (x * w[:, None]).T @ x + np.diag(self.prior)
        right = (x * w[:, None]).T @ y + self.prior * self.target
        return np.linalg.lstsq(normal, right, rcond=None)[0]

    def at(self, t_s: Floats, shape: Shape, weights: Floats) -> tuple[Floats, Floats]:
        """Fitted curve at media times, and its variance where the windows scatter as their weights say."""
        x = shape.basis(t_s) * self.unit
        inverse = np.linalg.pinv((self.x * weights[:, None]).T @ self.x + np.diag(self.prior))
        return x @ self.solve(weights), np.einsum("ki,ij,kj->k", x, inverse, x)

    def huber(self, base: Floats) -> tuple[Floats, Floats, float]:
        """Solution, final weights, chi of the residuals."""
        weights: Floats = base
        beta: Floats = np.zeros(len(self.unit))
        residual: Floats = np.zeros(len(self.y))
        for _ in range(20):
            beta = self.solve(weights)
            residual = (self.y - self.x @ beta) * np.sqrt(base)
            scale = max(1.4826 * float(np.median(np.abs(residual))), 0.3)
            weights = base * np.minimum(1.0, HUBER_K * scale / np.maximum(np.abs(residual), 1e-12))
        freedom: float = max(len(self.y) - len(self.unit), 1) / max(len(self.y), 1)
        share = weights / base
        chi = float(np.sum(share * residual**2)) / max(float(np.sum(share)), 1e-12) / freedom
        return beta, weights, float(np.sqrt(chi))


def fit_line(lags: Lags, shape: Shape, prior: DriftPrior) -> Line:
    """Huber fit of `shape` to the kept windows; a short clip holds its drift near `prior`."""
    _, _, base = lags.of_kept()
    problem = Problem.of(lags, shape, prior)
    beta, weights, chi = problem.huber(base)
    normal, held = (problem.x * weights[:, None]).T @ problem.x, np.diag(problem.prior)
    inverse = np.linalg.pinv(normal + held)
    scatter = scatter_of(lags, base, chi, LEAST_CHI) ** 2
    covariance = inverse @ (scatter * normal + held) @ inverse * np.outer(problem.unit, problem.unit)
    return Line(
        shape, beta * problem.unit, covariance, _bootstrap(problem, weights, beta), weights / base, chi
    )


def scatter_of(lags: Lags, base: Floats, seen: float, least: float) -> float:
    """Scatter of the lags, drawn towards what their own error bars say: few windows tell it badly."""
    own = float(np.mean(lags.sigma_s[lags.kept] ** 2 * base))
    count = len(base)
    return max(float(np.sqrt((count * seen**2 + TRUSTED_WINDOWS * own) / (count + TRUSTED_WINDOWS))), least)


def _bootstrap(problem: Problem, weights: Floats, beta: Floats) -> Floats:
    """Refit with the residuals of neighbours flipped together: half-overlapping windows are not independent.

    Flipping instead of drawing keeps windows on both sides of every jump.
    """
    count, size = len(problem.y), len(problem.unit)
    if count < max(6, size + 3):
        return np.empty((0, size))
    normal = (problem.x * weights[:, None]).T @ problem.x + np.diag(problem.prior)
    gain = np.linalg.pinv(normal) @ (problem.x * weights[:, None]).T
    residual = (problem.y - problem.x @ beta) * np.sqrt(count / (count - size))
    draw = np.random.default_rng(0)
    signs = draw.choice([-1.0, 1.0], size=(RESAMPLES, count // 2 + 2))
    shift = draw.integers(0, 2, size=RESAMPLES)
    blocks = (np.arange(count)[None, :] + shift[:, None]) // 2
    flipped = np.take_along_axis(signs, blocks, axis=1) * residual
    return (beta + flipped @ gain.T) * problem.unit


def cross_validated(lags: Lags, shape: Shape, prior: DriftPrior) -> float:
    """Weighted RMS on ten blocks of windows, each predicted by the others."""
    _, _, base = lags.of_kept()
    problem = Problem.of(lags, shape, prior)
    _, weights, _ = problem.huber(base)
    left = np.empty(len(problem.y))
    rows = np.arange(len(left))
    for block in np.array_split(rows, min(BLOCKS, len(rows))):
        left[block] = problem.y[block] - problem.x[block] @ problem.solve(weights, np.setdiff1d(rows, block))
    return float(np.sqrt(float(np.sum(weights * left**2)) / max(float(np.sum(weights)), 1e-30)))

"""Short clips: one fit over all cells, where windows are too few and too short to speak for themselves. All pure.

A window of 1.5 s has lost most of the slow motion with its mean, and the fourteen of a clip of twelve seconds tell
their own scatter badly. Shift, drift and rotation from all cells at once come near the limit that the noise sets, and
their error follows from the noise instead of from the scatter of a few windows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import fft
from scipy.spatial.transform import Rotation

from kitchensync.shell.array_types import Floats
from kitchensync.sync.fit.line import DriftPrior, Lags, Line
from kitchensync.sync.fit.pairing import FINE_HZ, Mask, Pairing
from kitchensync.sync.fit.windows import LARGEST_STEP_S, LONG_RUN_S, soft_weights

STEPS = 8
SETTLED_S = 1e-8
DRIFT = 1  # column of the drift among shift, drift and three small turns
LEAST_LEFT = 0.5  # of the cells, beside the gaps that the low pass widens
TOLERATED_SCATTER = 2.5  # windows this short scatter up to so many of their own error bars


@dataclass(frozen=True, slots=True)
class _Linear:
    """Residual `r = S_H(t + tau) - s R w_G - mean` (3, n) and its derivatives, with the weights (n,).

    The derivatives (3, n, 5 and more) are those in shift, drift, three small turns, and in the size of jumps. The
    scale s is the best one: a gyroscope that is a percent off, or a wrong unit, is motion left over and no noise.
    """

    residual: Floats
    jacobian: Floats
    weights: Floats
    bending: Floats  # (2, 2), sum over residual times second derivatives in shift and drift

    @classmethod
    def of(
        cls, pairing: Pairing, line: Line, rotation: Floats, good: Mask, jumps_s: tuple[float, ...] = ()
    ) -> _Linear:
        t_s = pairing.camera.t_s[good]
        at_s = t_s + line.at(t_s)
        slope, bend = pairing.spline(at_s, 1), pairing.spline(at_s, 2)
        turned = pairing.camera.values[good] @ rotation.T
        weights = soft_weights(turned)
        w_h, w_g = _centred(pairing.spline(at_s), weights), _centred(turned, weights)
        scale = float(weights @ (w_h * w_g).sum(axis=1)) / max(float(weights @ (w_g**2).sum(axis=1)), 1e-30)
        drift = slope * (t_s - line.t_mid_s)[:, None]
        after = [slope * (t_s > jump_s)[:, None] for jump_s in jumps_s]
        columns = [slope, drift, *(-scale * np.cross(axis, w_g) for axis in np.eye(3)), *after]
        stacked = np.stack([_centred(column, weights).T for column in columns], axis=2)
        residual = w_h - scale * w_g
        turn = weights * (residual * bend).sum(axis=1)
        powers = np.vander(t_s - line.t_mid_s, 3, increasing=True).T @ turn
        return cls(residual.T, stacked, weights, np.array([[powers[0], powers[1]], [powers[1], powers[2]]]))

    @property
    def normal(self) -> Floats:
        return np.tensordot(self.weights[:, None] * self.jacobian, self.jacobian, ([0, 1], [0, 1]))

    @property
    def hessian(self) -> Floats:
        """Second derivative of half the cost (5, 5): without what the noise of S' adds to the normal matrix.

        `E[n' n' + n'' n] = 0` for the noise n of the headset, so in little motion this is smaller than `normal`,
        which counts its own noise as motion.
        """
        exact = self.normal.copy()
        exact[:2, :2] += self.bending
        return exact if np.linalg.eigvalsh(exact[:2, :2])[0] > 0.0 else self.normal

    @property
    def gradient(self) -> Floats:
        return np.tensordot(self.weights * self.residual, self.jacobian, ([0, 1], [0, 1]))

    def score_variance(self) -> Floats:
        """Variance of the gradient (5, 5) when the noise is coloured but alike everywhere; Bartlett over 0.5 s."""
        count = self.residual.shape[1]
        shares = _bartlett(count)
        size = fft.next_fast_len(count + len(shares), real=True)
        power = (np.abs(fft.rfft(self.residual, size)) ** 2).sum(axis=0)
        alike = fft.irfft(power, size)[: len(shares)] / (3 * count)
        return _in_pairs(self.weights[:, None] * self.jacobian, shares * alike)

    def score_variance_as_seen(self) -> Floats:
        """The same from the gradient's own parts: larger where the noise grows with the motion."""
        parts = np.einsum("n,anp,an->np", self.weights, self.jacobian, self.residual)
        parts = parts - parts.mean(axis=0)
        return _in_pairs(parts[None], _bartlett(len(parts)))


def whole_fit(
    pairing: Pairing, line: Line, lags: Lags, rotation: Floats, good: Mask, prior: DriftPrior
) -> Line:
    """Refine a straight `line` by Gauss-Newton over shift, drift and rotation; its error replaces the windows'.

    Where the noise rises with the frequency, as that of rates out of poses does, both sides are put through the low
    pass that makes it flat and fitted again: least squares then weigh every frequency by what it is worth.
    """
    line, rotation, linear, held = _settled(pairing, line, rotation, good, prior)
    if (time_s := rising_noise_s(linear.residual)) > 0.0:
        flat = pairing.low_passed(time_s)
        left = good & flat.overlap(line.at(pairing.camera.t_s))
        if left.sum() > LEAST_LEFT * good.sum():
            line, rotation, linear, held = _settled(flat, line, rotation, left, prior)
    t_s, tau_s, base = lags.of_kept()
    away = tau_s - line.at(t_s)
    z = away / lags.sigma_s[lags.kept]
    # a clock that is no line scatters the windows far beyond their own error bars
    scatter = max(1.0, float(np.mean(z**2)) / TOLERATED_SCATTER**2) if len(z) else 1.0
    return replace(
        line,
        covariance=_covariance(linear, held, prior) * scatter,
        weights=np.ones(len(base)),
        chi=float(np.sqrt(np.mean(away**2 * base))),
    )


def _settled(
    pairing: Pairing, line: Line, rotation: Floats, good: Mask, prior: DriftPrior
) -> tuple[Line, Floats, _Linear, float]:
    """Line and rotation at rest, what is left there, and how strongly the prior holds the drift."""
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
    return line, rotation, _Linear.of(pairing, line, rotation, good), held


def least_jump_sigmas(pairing: Pairing, line: Line, rotation: Floats, good: Mask) -> float:
    """How many of its sigmas the least sure jump of a line is large, by all cells, beside shift, drift and turns.

    Windows of a second and a half claim too much in little motion, and a few of them soon look like a jump.
    """
    linear = _Linear.of(pairing, line, rotation, good, line.shape.breaks_s)
    inverse = np.linalg.pinv(linear.normal, hermitian=True)
    sizes = np.array([size for _, size in line.jumps])
    variances = [
        np.diag(inverse @ of @ inverse)[-len(sizes) :]
        for of in (linear.score_variance(), linear.score_variance_as_seen())
    ]
    return float((np.abs(sizes) / np.sqrt(np.maximum(np.max(variances, axis=0), 1e-30))).min())


def _solve(normal: Floats, gradient: Floats, held: float, away: float) -> tuple[Floats, Floats]:
    """Gauss-Newton step with the drift drawn to its prior by `held`, and the inverse of the normal matrix."""
    pull = np.zeros(len(normal))
    pull[DRIFT] = held
    inverse = np.linalg.pinv(normal + np.diag(pull), hermitian=True)
    return inverse @ (pull * away - gradient), inverse


def _covariance(linear: _Linear, held: float, prior: DriftPrior) -> Floats:
    """Covariance of shift and drift (2, 2): noise alike everywhere, or as seen when that is larger."""
    _, inverse = _solve(linear.hessian, linear.gradient, held, 0.0)
    drawn = np.zeros_like(inverse)
    drawn[DRIFT, DRIFT] = held**2 * prior.sigma**2 if held else 0.0
    alike, seen = (
        (inverse @ (variance + drawn) @ inverse)[:2, :2]
        for variance in (linear.score_variance(), linear.score_variance_as_seen())
    )
    return alike * max(1.0, float(np.mean(np.diag(seen) / np.maximum(np.diag(alike), 1e-30))))


def _centred(x: Floats, weights: Floats) -> Floats:
    return x - (weights[:, None] * x).sum(axis=0) / weights.sum()


def _in_pairs(parts: Floats, shares: Floats) -> Floats:
    """Sum over axes, n and m of `shares[|n - m|] parts[n] parts[m]^T` (p, p) for parts (axes, n, p)."""
    count = parts.shape[1]
    size = fft.next_fast_len(count + len(shares), real=True)
    around = np.zeros(size)
    around[: len(shares)] = shares
    around[size - len(shares) + 1 :] = shares[:0:-1]
    blurred = fft.irfft(fft.rfft(parts, size, axis=1) * fft.rfft(around).real[:, None], size, axis=1)
    total: Floats = np.tensordot(parts, blurred[:, :count], ([0, 1], [0, 1]))
    return 0.5 * (total + total.T)


def _bartlett(count: int) -> Floats:
    lags = min(int(LONG_RUN_S * FINE_HZ), count - 1)
    return 1.0 - np.arange(lags + 1) / (lags + 1.0)


BAND_HZ = (0.1, 8.0)  # above, a spline through poses of 30 Hz bends the spectrum
TIMES_S = np.concatenate([[0.0], np.geomspace(0.02, 2.0, 21)])  # 0.02 s: 8 Hz is where such noise would begin
LEAST_CELLS = 500


def rising_noise_s(residual: Floats) -> float:
    """The T of the likeliest `N(f) ~ 1 + (2 pi f T)^2` for what is left (3, n) at 100 Hz; 0 where noise is flat.

    Likelihood of a spectrum by its periodogram (Whittle 1953): `sum log N + P / N`, the height of N fitted along.
    """
    count = residual.shape[1]
    if count < LEAST_CELLS:
        return 0.0
    hz = np.fft.rfftfreq(count, 1.0 / FINE_HZ)
    inside = (hz >= BAND_HZ[0]) & (hz <= BAND_HZ[1])
    seen = (np.abs(np.fft.rfft(residual * np.hanning(count))) ** 2).sum(axis=0)[inside]
    shapes = 1.0 + (2.0 * np.pi * hz[inside] * TIMES_S[:, None]) ** 2
    unlikely = np.log((seen / shapes).mean(axis=1)) + np.log(shapes).mean(axis=1)
    return float(TIMES_S[int(np.argmin(unlikely))])

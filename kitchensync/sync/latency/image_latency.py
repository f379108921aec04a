"""Latency of a camera's pictures to its gyroscope by image rotation. Pure functions.

A picture with stamp t shows the motion at `t + latency` of the gyroscope. An alignment of gyroscopes cannot measure
this shift; it depends on the camera and its mode.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.interpolate import CubicSpline

from kitchensync.sensors.gopro.files.telemetry import TO_IMAGE_AXES
from kitchensync.shell.array_types import Floats, Mask
from kitchensync.sync.fit.resample import GyroTrack
from kitchensync.sync.latency.image_rotation import ImageTurns

THRESHOLDS: dict[str, float] = {
    "seconds_least": 8.0,
    "usable_share_least": 0.6,
    "turning_least_deg_per_s": 8.0,
    "r2_least": 0.8,
    "rival_share_most": 0.9,
    "scale_least": 0.4,
    "scale_most": 2.5,
    "parts_differ_most_ms": 5.0,
    "sigma_most_ms": 3.0,
}
"""Limits of the verdict; they are stored in every result."""

SEARCH_S, STEP_S = 0.2, 0.002
RIVAL_S = 0.3  # minimum distance of another lag
PARTS = 8
REFINE_STEPS = 8
OUTLIER_SIGMAS = 3.0
LEAST_SIGMA_S = 0.3e-3  # limit by the stamps of the gyroscope

UPRIGHT, UPSIDE_DOWN = np.array([1.0, 1.0, 1.0]), np.array([-1.0, -1.0, 1.0])  # half a turn about z


@dataclass(frozen=True, slots=True)
class ImageLatency:
    """The latency with its evidence; `refusals` is empty if it is usable.

    `parts_s` are the latencies of the clip's two halves; `scale` fits the assumed lens, for x, y, z; `rival` is the
    highest R^2 of another peak over the best.
    """

    latency_s: float
    sigma_s: float
    r2: float
    rival: float
    parts_s: tuple[float, float]
    scale: Floats
    is_upside_down: bool
    pairs: int
    usable: int
    seconds: float
    turning_deg_per_s: float
    refusals: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WideSearch:
    """The best lag in seconds, its R^2, and the highest R^2 elsewhere over it."""

    lag_s: float
    r2: float
    rival: float


def gopro_to_image(rad_per_s: Floats) -> Floats:
    """Rates (n, 3) from GoPro's axes (X left, Y out of the screen, Z up) to OpenCV's (x right, y down, z forward)."""
    return rad_per_s @ TO_IMAGE_AXES.T


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Rotations between pictures and of the gyroscope: `turned(lag)` (n, 3) and its slope over the lag."""

    t0: Floats
    t1: Floats
    seen: Floats
    angle: CubicSpline

    def turned(self, lag_s: float) -> Floats:
        return np.asarray(self.angle(self.t1 + lag_s) - self.angle(self.t0 + lag_s))

    def slope(self, lag_s: float) -> Floats:
        return np.asarray(self.angle(self.t1 + lag_s, 1) - self.angle(self.t0 + lag_s, 1))

    def part(self, rows: Mask) -> _Pairs:
        return _Pairs(self.t0[rows], self.t1[rows], self.seen[rows], self.angle)


def _pairs_of(turns: ImageTurns, gyro: GyroTrack, rows: Mask) -> _Pairs:
    steps = np.diff(gyro.t_s)[:, None]
    middle = 0.5 * (gyro.rad_per_s[1:] + gyro.rad_per_s[:-1])
    angle = np.concatenate([np.zeros((1, 3)), np.cumsum(middle * steps, axis=0)])
    return _Pairs(turns.t0_s[rows], turns.t1_s[rows], turns.radians[rows], CubicSpline(gyro.t_s, angle))


def measure_latency(turns: ImageTurns, gyro: GyroTrack) -> ImageLatency:
    """Find the latency with the best match of image rotation and gyroscope (largest R^2), and judge it.

    `gyro` is in rad/s, OpenCV's camera axes, on media time. Each axis has a scale (the lens is only roughly known)
    and an offset (bias); the camera may be upside down. The reasons against a poor clip are in `refusals`.
    """
    inside = (turns.t0_s - SEARCH_S > gyro.t_s[0]) & (turns.t1_s + SEARCH_S < gyro.t_s[-1])
    rows = turns.usable & inside
    pairs = _pairs_of(turns, gyro, rows)
    total, usable = int(inside.sum()), int(rows.sum())
    seconds = float((turns.t1_s - turns.t0_s)[inside].sum())
    if usable < 2 * PARTS:
        nan, why = float("nan"), f"only {usable} of {total} pictures have enough points to follow"
        return ImageLatency(
            nan, nan, 0.0, nan, (nan, nan), np.full(3, nan), False, total, usable, seconds, 0.0, (why,)
        )
    lags = np.arange(-SEARCH_S, SEARCH_S + STEP_S / 2, STEP_S)
    curves = [np.array([_fit(pairs, lag, signs)[0] for lag in lags]) for signs in (UPRIGHT, UPSIDE_DOWN)]
    flip = int(np.argmax([curve.max() for curve in curves]))
    signs, curve = (UPRIGHT, UPSIDE_DOWN)[flip], curves[flip]
    best = int(np.argmax(curve))
    kept = _without_outliers(pairs, float(lags[best]), signs)
    latency, stat = _refine(pairs.part(kept), float(lags[best]))
    r2, scale = _fit(pairs.part(kept), latency, signs)
    parts = _by_parts(pairs.part(kept), latency)
    spread = float(np.std(parts, ddof=1) / np.sqrt(len(parts)))
    at = np.array_split(parts, 2)
    rates = pairs.turned(0.0) / (pairs.t1 - pairs.t0)[:, None]
    turning = rates - rates.mean(axis=0)
    result = ImageLatency(
        latency_s=latency,
        sigma_s=float(np.sqrt(max(stat, spread) ** 2 + LEAST_SIGMA_S**2)),
        r2=r2,
        rival=_rival(curves, flip, best) / max(float(curve[best]), 1e-9),
        parts_s=(float(np.mean(at[0])), float(np.mean(at[1]))),
        scale=scale,
        is_upside_down=bool(flip),
        pairs=total,
        usable=usable,
        seconds=seconds,
        turning_deg_per_s=float(np.degrees(np.sqrt((turning**2).sum(axis=1).mean()))),
        refusals=(),
    )
    is_edge = best in (0, len(lags) - 1)
    return replace(result, refusals=tuple(_refusals(result, THRESHOLDS, is_edge=is_edge)))


def wide_search(turns: ImageTurns, gyro: GyroTrack, lags_s: Floats) -> WideSearch:
    """Find the lag with the best match of image rotation and gyroscope among lags of seconds.

    `gyro` as in `measure_latency`. Each lag uses the pictures with rotation rates, and must have at least half of
    them. `rival` is the highest R^2 further than `RIVAL_S` away, relative to the best.
    """
    pairs = _pairs_of(turns, gyro, turns.usable)
    curve = np.zeros(len(lags_s))
    for number, lag in enumerate(lags_s):
        rows = (pairs.t0 + lag > gyro.t_s[0]) & (pairs.t1 + lag < gyro.t_s[-1])
        if rows.sum() >= max(2 * PARTS, len(rows) / 2):
            part = pairs.part(rows)
            curve[number] = max(_fit(part, lag, signs)[0] for signs in (UPRIGHT, UPSIDE_DOWN))
    best = int(np.argmax(curve))
    others = curve[np.abs(lags_s - lags_s[best]) > RIVAL_S]
    rival = float(others.max(initial=0.0)) / max(float(curve[best]), 1e-9)
    return WideSearch(float(lags_s[best]), float(curve[best]), rival)


def _fit(pairs: _Pairs, lag_s: float, signs: Floats) -> tuple[float, Floats]:
    """Return R^2 over all axes, and the scale of each, 0 if it has the wrong sign."""
    x = pairs.turned(lag_s) * signs
    x, y = x - x.mean(axis=0), pairs.seen - pairs.seen.mean(axis=0)
    power = (x**2).sum(axis=0)
    scale = np.maximum((x * y).sum(axis=0), 0.0) / np.maximum(power, 1e-15)
    residual_power = float(((y - scale * x) ** 2).sum())
    return 1.0 - residual_power / max(float((y**2).sum()), 1e-15), scale


def _without_outliers(pairs: _Pairs, lag_s: float, signs: Floats) -> Mask:
    """Return the pictures without other moving objects, by the residual to the gyroscope."""
    _, scale = _fit(pairs, lag_s, signs)
    residual = pairs.seen - scale * signs * pairs.turned(lag_s)
    deviation = np.linalg.norm(residual - np.median(residual, axis=0), axis=1)
    return np.asarray(deviation <= OUTLIER_SIGMAS * 1.4826 * max(float(np.median(deviation)), 1e-9) + 1e-12)


def _refine(pairs: _Pairs, lag_s: float) -> tuple[float, float]:
    """Fit the lag with scale and offset of each axis by Gauss-Newton; return it with its standard error.

    An axis gives `d lag = c / scale` from `seen = scale turned + offset + c slope`; the axes are weighted by their
    variances. Errors of neighbouring pairs are negatively correlated (they share a picture), so white noise is a
    conservative assumption.
    """
    sigma = float("inf")
    for _ in range(REFINE_STEPS):
        tops, weights = 0.0, 0.0
        turned, slope = pairs.turned(lag_s), pairs.slope(lag_s)
        ones = np.ones(len(turned))
        for axis, seen in enumerate(pairs.seen.T):
            columns = np.column_stack([turned[:, axis], ones, slope[:, axis]])
            solution, _, rank, _ = np.linalg.lstsq(columns, seen, rcond=None)
            if rank < 3 or abs(solution[0]) < 0.1:
                continue
            residual = seen - columns @ solution
            noise = float(residual @ residual) / max(len(seen) - 3, 1)
            variance = noise * float(np.linalg.inv(columns.T @ columns)[2, 2]) / solution[0] ** 2
            tops += float(solution[2] / solution[0]) / variance
            weights += 1.0 / variance
        if weights == 0.0:
            return lag_s, float("inf")
        step, sigma = tops / weights, weights**-0.5
        lag_s += float(np.clip(step, -STEP_S * 4, STEP_S * 4))
        if abs(step) < 1e-6:
            break
    return lag_s, sigma


def _by_parts(pairs: _Pairs, lag_s: float) -> Floats:
    """Return the latency of each of eight parts of the clip; a part without motion has that of the whole."""
    latencies = []
    for rows in np.array_split(np.arange(len(pairs.t0)), PARTS):
        lag, sigma = _refine(pairs.part(rows), lag_s)  # type: ignore[arg-type]
        latencies.append(lag if sigma < 0.02 else lag_s)
    return np.array(latencies)


def _rival(curves: list[Floats], flip: int, best: int) -> float:
    """Return the highest R^2 of another peak."""
    highest = 0.0
    for number, curve in enumerate(curves):
        inner = (curve[1:-1] >= curve[:-2]) & (curve[1:-1] > curve[2:])
        peaks = [int(k) + 1 for k in np.flatnonzero(inner)] + [0, len(curve) - 1]
        for k in peaks:
            between = curve[min(best, k) : max(best, k) + 1]
            falls = np.diff(between if k > best else between[::-1]) <= 1e-4  # then `k` is an end, not a peak
            if number == flip and (abs(k - best) <= 1 or falls.all()):
                continue
            highest = max(highest, float(curve[k]))
    return highest


def _refusals(f: ImageLatency, t: dict[str, float], *, is_edge: bool) -> list[str]:
    why = []
    if f.seconds < t["seconds_least"]:
        why.append(
            f"the clip has {f.seconds:.1f} s of pictures, at least {t['seconds_least']:g} s are needed"
        )
    if f.usable < t["usable_share_least"] * f.pairs:
        why.append(
            f"only {f.usable} of {f.pairs} pictures have enough points that turn alike: more light, more texture,"
            " no hands in view"
        )
    if f.turning_deg_per_s < t["turning_least_deg_per_s"]:
        why.append(
            f"the camera turns by {f.turning_deg_per_s:.1f} deg/s only, at least"
            f" {t['turning_least_deg_per_s']:g} are needed: turn it briskly about all axes"
        )
    if f.r2 < t["r2_least"]:
        why.append(
            f"the pictures do not follow the gyroscope (R2 {f.r2:.2f}, at least {t['r2_least']:g}): stabilised,"
            " re-framed, or something large moves in view"
        )
        return why  # the rest would only speak of chance
    if is_edge:
        why.append(f"the best latency lies at the edge of the search (+-{SEARCH_S * 1e3:.0f} ms)")
    if f.rival > t["rival_share_most"]:
        why.append(f"another latency fits nearly as well ({f.rival:.2f} of the best): turn it less regularly")
    if np.any((f.scale > 0) & ((f.scale < t["scale_least"]) | (f.scale > t["scale_most"]))):
        shown = ", ".join(f"{value:.2f}" for value in f.scale)
        why.append(f"the pictures turn by another amount than the gyroscope (factors {shown} for x, y, z)")
    apart_ms = abs(f.parts_s[0] - f.parts_s[1]) * 1e3
    if not apart_ms <= t["parts_differ_most_ms"]:
        why.append(f"the two halves of the clip differ by {apart_ms:.1f} ms")
    if not f.sigma_s * 1e3 <= t["sigma_most_ms"]:
        why.append(f"the latency is known only to {f.sigma_s * 1e3:.1f} ms")
    return why

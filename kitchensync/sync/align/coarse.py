"""Coarse search: at which lag do two rotation-rate tracks agree, whatever the rotation between the devices.

Lags are `tau` in `t_H = t_G + tau`, seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import fft, signal

from kitchensync.shell.array_types import Floats
from kitchensync.sync.errors import TooShort
from kitchensync.sync.fit.resample import Grid, GyroTrack, box_resample

COARSE_HZ = 50.0  # 25 Hz carry the 12 Hz band too, but half a cell of lag then costs up to a tenth of rho
RATE_HZ = 25.0  # for searches of many segments and rates: fast, and still carries BAND_HZ
BAND_HZ = (0.05, 12.0)
PERIODS_IN_CLIP = 3.0  # slower swings than this the ends of a short clip distort
COMPRESS_RAD_PER_S = np.deg2rad(25.0)
PEAK_GUARD_S = 0.5
LEAST_ENERGY = 0.2  # a few seconds that overlap by chance can score high
RHO_CAP = 0.95  # above it only the phase of the lag grid decides
LEAST_S = 3.0
RATE_SPAN = 0.015  # nominal stamps of real sensors were up to 1.25 % wrong
RATE_CLIP_S = 60.0  # the longer the clip, the finer the grid of rates has to be


@dataclass(frozen=True, slots=True)
class Window:
    """Where the lag is looked for: `centre_s` give or take `half_width_s`."""

    centre_s: float
    half_width_s: float


@dataclass(frozen=True, slots=True)
class Coarse:
    """The score over all lags, and its best one."""

    lags_s: Floats
    score: Floats  # rho per lag, NaN where too little overlaps
    overlap_s: Floats  # seconds compared at each lag
    tau_s: float
    rho: float
    rho2: float
    second_tau_s: float
    rival: float  # likelihood of the second best as a share of the best
    z: float
    edge: bool
    magnitude_tau_s: float
    rate: float
    likelihood: float = 0.0  # of the best lag: a high score over a few seconds weighs less than over all


@dataclass(frozen=True, slots=True)
class Prepared:
    """A track on the coarse grid, centred, filtered and compressed: `x` (n, 3), masked cells are zero."""

    grid: Grid
    x: Floats

    @classmethod
    def of(
        cls, headset: GyroTrack, camera: GyroTrack, hz: float, *, rate: float = 1.0
    ) -> tuple[Prepared, Prepared]:
        """Both tracks, filtered alike. Raises TooShort when a track holds under 3 s."""
        grids = box_resample(headset, hz), box_resample(camera, hz, rate=rate)
        for what, grid in zip(("headset gyroscope", "camera gyroscope"), grids, strict=True):
            if len(grid.good) < LEAST_S * hz:
                raise TooShort(what, len(grid.good) / hz, LEAST_S, is_of_master=grid is grids[0])
        seconds = _shorter(*grids)
        grid_h, grid_g = grids
        return cls(grid_h, prepared(grid_h, seconds)), cls(grid_g, prepared(grid_g, seconds))

    def part(self, start: int, stop: int) -> Prepared:
        """The cells [start, stop)."""
        grid = self.grid
        piece = Grid(grid.hz, grid.first + start, grid.values[start:stop], grid.good[start:stop])
        return Prepared(piece, self.x[start:stop])


def coarse_search(
    headset: GyroTrack, camera: GyroTrack, window: Window | None, *, rate: float = 1.0
) -> Coarse:
    """Search the best lag at 50 Hz over the whole overlap; `window` limits which peak may win. Raises TooShort."""
    return read_peaks(*scores_of(*Prepared.of(headset, camera, COARSE_HZ, rate=rate)), window, rate)


def prepared(grid: Grid, seconds: float) -> Floats:
    """Band-passed, compressed rates (n, 3); masked cells are zero. `seconds` is the length of the shorter track."""
    low_hz = max(BAND_HZ[0], min(PERIODS_IN_CLIP / seconds, 1.0))
    x = grid.values - np.median(grid.values[grid.good] if grid.good.any() else grid.values, axis=0)
    high_hz = min(BAND_HZ[1], 0.48 * grid.hz)
    sos = signal.butter(2, (low_hz, high_hz), btype="bandpass", fs=grid.hz, output="sos")
    pad = min(len(x) - 1, int(grid.hz / low_hz))  # mirrored, or an offset at an end rings for seconds
    x = signal.sosfiltfilt(sos, x, axis=0, padtype="even", padlen=pad)
    x /= np.sqrt(1.0 + (x**2).sum(axis=1, keepdims=True) / COMPRESS_RAD_PER_S**2)
    x[~grid.good] = 0.0
    return x


def scores_of(headset: Prepared, camera: Prepared) -> tuple[Floats, Floats, Floats, Floats]:
    """Lags (s), rotation-aware score, correlation of lengths, overlap (s).

    `rho = (s1 + s2 + sgn(det C) s3) / sqrt(E_H E_G)`, s the singular values of C: best over all rotations.
    NaN where less than a fifth of the energy, or less than 3 s, overlaps.
    """
    grid_h, grid_g = headset.grid, camera.grid
    cross, norm, magnitude, cells = _correlate(headset.x, camera.x, grid_h, grid_g)
    enough = cells > 0
    best = np.linalg.svd(cross, compute_uv=False)
    best[:, 2] *= np.sign(np.linalg.det(cross))
    score = np.where(enough, best.sum(axis=1) / norm, np.nan)
    first_lag = grid_h.first - grid_g.first - (len(grid_g.good) - 1)
    lags_s = (first_lag + np.arange(len(score))) / grid_h.hz
    return lags_s, score, np.where(enough, magnitude / norm, np.nan), cells / grid_h.hz


def _correlate(xh: Floats, xg: Floats, grid_h: Grid, grid_g: Grid) -> tuple[Floats, Floats, Floats, Floats]:
    """`C(l) = sum w_H(t + l) w_G(t)^T` (lags, 3, 3), `sqrt(E_H E_G)`, correlation of lengths, cells compared.

    No cells count as compared where less than a fifth of the energy or less than 3 s overlap.
    """
    total = len(xh) + len(xg) - 1
    size = fft.next_fast_len(total, real=True)
    spectrum_h = fft.rfft(_channels(xh, grid_h.good), size, axis=0)
    spectrum_g = np.conj(fft.rfft(_channels(xg, grid_g.good), size, axis=0))

    def over_lags(i: int, j: int) -> Floats:
        full = fft.irfft(spectrum_h[:, i] * spectrum_g[:, j], size)
        return np.roll(full, len(xg) - 1)[:total]

    cross = np.empty((total, 3, 3))
    for i in range(3):
        for j in range(3):
            cross[:, i, j] = over_lags(i, j)
    energy_h, energy_g, magnitude = over_lags(3, 5), over_lags(5, 3), over_lags(4, 4)
    whole_h, whole_g = (max(float((x**2).sum()), 1e-30) for x in (xh, xg))
    enough = np.maximum(energy_h / whole_h, energy_g / whole_g) >= LEAST_ENERGY
    cells = over_lags(5, 5)
    cells[~enough | (cells < LEAST_S * grid_h.hz)] = 0.0
    return cross, np.sqrt(np.maximum(energy_h * energy_g, 1e-30)), magnitude, cells


def search_rate(headset: GyroTrack, camera: GyroTrack) -> float:
    """Best rate of nominal camera stamps: +-1.5 % over the liveliest minute, then finer over everything."""
    clip = _liveliest(camera, RATE_CLIP_S)
    step = 0.5 / (RATE_HZ * max(float(np.ptp(clip.t_s)), LEAST_S))
    count = int(np.ceil(RATE_SPAN / step))
    rate = _best_rate(headset, clip, 1.0 + step * np.arange(-count, count + 1))
    fine = 0.5 / (RATE_HZ * max(float(np.ptp(camera.t_s)), LEAST_S))
    if fine > 0.7 * step:
        return rate
    count = int(np.ceil(step / fine))
    return _best_rate(headset, camera, rate + fine * np.arange(-count, count + 1))


def _best_rate(headset: GyroTrack, camera: GyroTrack, rates: Floats) -> float:
    """Rate with the largest `|C|_F` at any lag: as blind to rotation as the score, and cheaper."""
    grid_h = box_resample(headset, RATE_HZ)
    seconds = _shorter(grid_h, box_resample(camera, RATE_HZ))
    xh = prepared(grid_h, seconds)
    tops = []
    for rate in rates:
        grid_g = box_resample(camera, RATE_HZ, rate=float(rate))
        cross, norm, _, cells = _correlate(xh, prepared(grid_g, seconds), grid_h, grid_g)
        tops.append(float(np.where(cells > 0, np.sqrt((cross**2).sum(axis=(1, 2))) / norm, 0.0).max()))
    return float(rates[int(np.argmax(tops))])


def _shorter(grid_h: Grid, grid_g: Grid) -> float:
    return min(len(grid_h.good), len(grid_g.good)) / grid_h.hz


def _channels(x: Floats, good: npt.NDArray[np.bool_]) -> Floats:
    """Columns to correlate: three axes, squared length, its root without mean, and the mask."""
    squared = (x**2).sum(axis=1)
    length = np.sqrt(squared)
    length = np.where(good, length - length[good].mean() if good.any() else length, 0.0)
    return np.column_stack([x, squared, length, good.astype(np.float64)])


def read_peaks(
    lags_s: Floats, score: Floats, magnitude: Floats, overlap_s: Floats, window: Window | None, rate: float
) -> Coarse:
    """Best and second best lag by likelihood, with the scores rho at both.

    A few seconds that overlap by chance can score high, so lags are ranked by `-overlap ln(1 - rho^2)`, and z is
    computed from `rho sqrt(overlap)`, which has the same noise at every lag. The rival's share ignores rho above
    0.95, where only the phase of the lag grid decides.
    """
    usable = np.isfinite(score)
    inside = usable.copy()
    if window is not None:
        inside &= np.abs(lags_s - window.centre_s) <= window.half_width_s
    if not inside.any():
        nan = float("nan")
        return Coarse(lags_s, score, overlap_s, nan, 0.0, 0.0, nan, 1.0, 0.0, True, nan, rate)
    peak = int(np.argmax(np.where(inside, _likelihood(score, overlap_s, 0.999), -1.0)))
    likely = _likelihood(score, overlap_s, RHO_CAP)
    ends = np.flatnonzero(inside)[[0, -1]]
    clear = usable & (np.abs(lags_s - lags_s[peak]) > PEAK_GUARD_S)
    second = int(np.argmax(np.where(clear, likely, -1.0)))
    even = (score * np.sqrt(overlap_s))[usable]
    median = float(np.median(even))
    mad = float(np.median(np.abs(even - median)))
    return Coarse(
        lags_s=lags_s,
        score=score,
        overlap_s=overlap_s,
        tau_s=float(lags_s[peak]) + parabola(score, peak) * float(lags_s[1] - lags_s[0]),
        rho=float(score[peak]),
        rho2=float(score[second]) if clear.any() else 0.0,
        second_tau_s=float(lags_s[second]),
        rival=float(likely[second] / max(likely[peak], 1e-12)) if clear.any() else 0.0,
        z=(float(score[peak] * np.sqrt(overlap_s[peak])) - median) / max(mad, 1e-12),
        edge=bool(peak in ends),
        magnitude_tau_s=float(lags_s[int(np.argmax(np.where(inside, magnitude, -np.inf)))]),
        rate=rate,
        likelihood=float(_likelihood(score, overlap_s, 0.999)[peak]),
    )


def _likelihood(score: Floats, overlap_s: Floats, cap: float) -> Floats:
    """`-overlap ln(1 - rho^2)`, 0 where nothing can be compared."""
    return -overlap_s * np.log1p(-(np.clip(np.nan_to_num(score), 0.0, cap) ** 2))


def parabola(score: Floats, peak: int) -> float:
    """Return how far the top of the parabola through a peak and its neighbours lies from it, -0.5 to 0.5."""
    if not 0 < peak < len(score) - 1 or not np.isfinite(score[peak - 1 : peak + 2]).all():
        return 0.0
    left, top, right = score[peak - 1 : peak + 2]
    bend = left - 2.0 * top + right
    return float(np.clip(0.5 * (left - right) / bend, -0.5, 0.5)) if bend < 0 else 0.0


def _liveliest(track: GyroTrack, seconds: float) -> GyroTrack:
    """The stretch of `seconds` with the most rotation."""
    if np.ptp(track.t_s) <= seconds:
        return track
    power = np.concatenate([[0.0], np.cumsum((track.rad_per_s**2).sum(axis=1))])
    stops = np.searchsorted(track.t_s, track.t_s + seconds)
    whole = track.t_s + seconds <= track.t_s[-1]
    start = int(np.argmax(np.where(whole, power[stops] - power[:-1], -1.0)))
    piece = slice(start, int(stops[start]))
    return GyroTrack(track.t_s[piece], track.rad_per_s[piece])

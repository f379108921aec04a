"""Both gyroscopes on one fine grid, ready to be compared at any lag."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import signal
from scipy.interpolate import CubicSpline

from kitchensync.shell.array_types import Floats, Mask
from kitchensync.sync.fit.resample import Grid, GyroTrack, box_resample

FINE_HZ = 100.0
SMOOTH_HZ = 20.0  # unsmoothed noise pulls lags towards half cells
SMEARED_CELLS = 4
FORGOTTEN = 5.0  # times the time of a low pass: under a percent is left


@dataclass(frozen=True, slots=True)
class Pairing:
    """Both tracks on the fine grid, ready to be compared at any lag."""

    camera: Grid
    headset: Grid
    spline: CubicSpline

    @classmethod
    def of(cls, headset: GyroTrack, camera: GyroTrack) -> Pairing:
        """Resample both to 100 Hz boxes, smooth them alike, and lay a spline through the headset's.

        Without the smoothing, noise pulls lags towards half cells: a spline between two noisy cells is quieter
        than at a cell, so a fit of least squares likes it there (milliseconds, when the head hardly moves).
        """
        grid_h, grid_g = _smooth(box_resample(headset, FINE_HZ)), _smooth(box_resample(camera, FINE_HZ))
        return cls(grid_g, grid_h, CubicSpline(grid_h.t_s, grid_h.values, axis=0))

    def low_passed(self, time_s: float) -> Pairing:
        """Both sides through the same low pass of first order, `1 / (1 + i w T)`, and as large as before.

        Its delay is the same on both sides. What it has not forgotten of a gap or of the start no longer counts.
        """
        kept = float(np.exp(-1.0 / (self.camera.hz * time_s)))
        blurred = int(np.ceil(FORGOTTEN * time_s * self.camera.hz))
        sides = [_leaky(grid, kept, blurred) for grid in (self.headset, self.camera)]
        gain = np.sqrt((self.camera.values**2).sum() / max(float((sides[1].values ** 2).sum()), 1e-30))
        grid_h, grid_g = (replace(grid, values=grid.values * gain) for grid in sides)
        return Pairing(grid_g, grid_h, CubicSpline(grid_h.t_s, grid_h.values, axis=0))

    def usable(self, t_h_s: Floats) -> Mask:
        """Times of the headset clock where the spline rests on good cells on both sides."""
        cell = np.floor(t_h_s * self.headset.hz - 0.5).astype(np.int64) - self.headset.first
        inside = (cell >= 0) & (cell + 1 < len(self.headset.good))
        at = np.clip(cell, 0, max(len(self.headset.good) - 2, 0))
        return inside & self.headset.good[at] & self.headset.good[at + 1]

    def overlap(self, tau_s: Floats) -> Mask:
        """Camera cells that can be compared at lags `tau_s` (one a cell)."""
        return self.camera.good & self.usable(self.camera.t_s + tau_s)


def _smooth(grid: Grid) -> Grid:
    """Zero-phase low pass; the cells beside a gap, which it smears, no longer count as good."""
    if len(grid.good) < 4 * FINE_HZ / SMOOTH_HZ + 10:
        return grid
    sos = signal.butter(4, SMOOTH_HZ, fs=grid.hz, output="sos")
    near = np.convolve(~grid.good, np.ones(2 * SMEARED_CELLS + 1), mode="same") > 0.5
    return replace(grid, values=signal.sosfiltfilt(sos, grid.values, axis=0), good=~near)


def _leaky(grid: Grid, kept: float, blurred: int) -> Grid:
    """Low pass of first order; cells within `blurred` after a gap or after the start no longer count."""
    values, _ = signal.lfilter([1.0 - kept], [1.0, -kept], grid.values, axis=0, zi=kept * grid.values[:1])
    last_bad = np.maximum.accumulate(np.where(grid.good, -1, np.arange(len(grid.good))))
    return replace(grid, values=values, good=np.arange(len(grid.good)) - last_bad > blurred)

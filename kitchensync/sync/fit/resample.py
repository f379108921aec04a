"""Gyroscope tracks and their two resamplings: streamed decimation, and integrate-interpolate-difference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kitchensync.shell.array_types import Floats, Mask
from kitchensync.sync.errors import BadArrays

SMALLEST_GAP_S = 0.030
GAP_PERIODS = 4.0
DECIMATED_HZ = 400.0  # the gyroscope's 6.6 kHz of a whole recording would take too much memory
LONGEST_S = 86_400.0  # a grid over more is a wrong stamp, and would take all memory


@dataclass(frozen=True, slots=True)
class GyroTrack:
    """Rotation rates (n, 3) at strictly increasing times `t_s` (n,) of one clock."""

    t_s: Floats
    rad_per_s: Floats

    def scaled(self, factor: float) -> GyroTrack:
        """The same motion in another unit."""
        return GyroTrack(self.t_s, self.rad_per_s * factor)


@dataclass(frozen=True, slots=True)
class Grid:
    """Box averages on cells `[k, k + 1) / hz`: `first` is the k of row 0; `good` cells touch no gap."""

    hz: float
    first: int
    values: Floats
    good: Mask

    @property
    def t_s(self) -> Floats:
        """Middle of every cell, seconds."""
        return (self.first + np.arange(len(self.good)) + 0.5) / self.hz


def make_track(what: str, t_s: npt.ArrayLike, rad_per_s: npt.ArrayLike) -> GyroTrack:
    """Clean one track: finite, strictly increasing. Raises BadArrays for other shapes or under two samples."""
    times = np.asarray(t_s, dtype=np.float64)
    rates = np.asarray(rad_per_s, dtype=np.float64)
    if times.ndim != 1 or rates.shape != (len(times), 3):
        raise BadArrays(what, f"times {times.shape} and rates {rates.shape} do not fit (n,) and (n, 3)")
    keep = np.isfinite(times) & np.isfinite(rates).all(axis=1)
    times, rates = times[keep], rates[keep]
    keep = rising(times, -np.inf)
    if keep.sum() < 2:
        raise BadArrays(what, f"only {int(keep.sum())} usable samples")
    return GyroTrack(times[keep], rates[keep])


def rising(t_s: Floats, after_s: float) -> Mask:
    """Mark the samples later than all before them and than `after_s`."""
    if len(t_s) == 0:
        return np.zeros(0, dtype=bool)
    before = np.maximum.accumulate(np.concatenate([[after_s], t_s[:-1]]))
    return t_s > before


def decimate(blocks: Iterator[tuple[Floats, npt.NDArray[np.floating]]], factor: int) -> GyroTrack:
    """Average groups of `factor` samples, block by block; a group never spans a hole.

    `blocks` yields times (n,) in s and rates (n, 3). A symmetric box adds no delay. Memory grows with the
    output only.
    """
    times: list[Floats] = []
    rates: list[Floats] = []
    tail_t, tail_w, latest = np.empty(0), np.empty((0, 3)), -np.inf
    for block_t, block_w in blocks:
        keep = rising(block_t, latest) & np.isfinite(block_w).all(axis=1)
        if not keep.any():
            continue
        latest = float(block_t[keep][-1])
        t_s = np.concatenate([tail_t, block_t[keep]])
        w = np.concatenate([tail_w, block_w[keep]])
        if len(t_s) < 2 * factor:
            tail_t, tail_w = t_s, w
            continue
        mean_t, mean_w, used = _group_means(t_s, w, factor)
        times.append(mean_t)
        rates.append(mean_w)
        tail_t, tail_w = t_s[used:], w[used:]
    if len(tail_t) >= factor:
        mean_t, mean_w, _ = _group_means(tail_t, tail_w, factor)
        times.append(mean_t)
        rates.append(mean_w)
    if sum(map(len, times)) < 2:
        raise BadArrays("gyroscope", "fewer than two usable samples")
    return GyroTrack(np.concatenate(times), np.concatenate(rates))


def _group_means(t_s: Floats, w: Floats, factor: int) -> tuple[Floats, Floats, int]:
    """Means of whole groups, and how many samples they used; the group count restarts after a hole."""
    step = np.diff(t_s)
    hole = np.concatenate([[False], step > 3.0 * np.median(step)])
    stretch_start = np.maximum.accumulate(np.where(hole, np.arange(len(t_s)), 0))
    position = np.arange(len(t_s)) - stretch_start
    starts = np.flatnonzero(position % factor == 0)
    ends = np.append(starts[1:], len(t_s))
    whole = ends - starts == factor
    mean_t = np.add.reduceat(t_s - t_s[0], starts)[whole] / factor + t_s[0]
    mean_w = np.add.reduceat(w, starts, axis=0)[whole] / factor
    used = int(ends[-1]) if whole[-1] else int(starts[-1])
    return mean_t, mean_w, used


def box_resample(track: GyroTrack, hz: float, *, rate: float = 1.0) -> Grid:
    """Exact box averages on a uniform grid: integrate, interpolate, difference.

    `w_k = (I(e_k+1) - I(e_k)) hz`, I the integral of the track taken as straight lines between samples: it is
    anti-aliased, works for irregular stamps and has no delay. `rate` stretches the track's times first. Raises
    BadArrays when the track spans more than a day.
    """
    t_s = track.t_s * rate if rate != 1.0 else track.t_s
    first, stop = int(np.ceil(t_s[0] * hz)), int(np.floor(t_s[-1] * hz))
    cells = stop - first
    if cells > LONGEST_S * hz:
        raise BadArrays(
            "gyroscope", f"its stamps span {cells / hz / 3600.0:.0f} hours: some of them are wrong"
        )
    if cells < 1:
        return Grid(hz, first, np.empty((0, 3)), np.empty(0, dtype=bool))
    edges = (first + np.arange(cells + 1)) / hz
    values = np.diff(_integral_at(t_s, track.rad_per_s, edges), axis=0) * hz
    return Grid(hz, first, values, ~_cells_in_gaps(t_s, hz, first, cells))


def _integral_at(t_s: Floats, w: Floats, edges: Floats) -> Floats:
    step = np.diff(t_s)
    total = np.zeros_like(w)
    np.cumsum(0.5 * (w[1:] + w[:-1]) * step[:, None], axis=0, out=total[1:])
    at = np.clip(np.searchsorted(t_s, edges, side="right") - 1, 0, len(t_s) - 2)
    into = (edges - t_s[at])[:, None]
    slope = (w[at + 1] - w[at]) / step[at, None]
    return total[at] + into * (w[at] + 0.5 * into * slope)


def _cells_in_gaps(t_s: Floats, hz: float, first: int, cells: int) -> Mask:
    touched = np.zeros(cells + 1, dtype=np.int64)
    step = np.diff(t_s)
    wide = np.flatnonzero(step > max(GAP_PERIODS * float(np.median(step)), SMALLEST_GAP_S))
    begin = np.clip(np.floor(t_s[wide] * hz).astype(np.int64) - first, 0, cells)
    end = np.clip(np.floor(t_s[wide + 1] * hz).astype(np.int64) - first + 1, 0, cells)
    np.add.at(touched, begin, 1)
    np.add.at(touched, end, -1)
    return np.cumsum(touched)[:cells] > 0

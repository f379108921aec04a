"""Find the samples of each stream for every frame of the master: the nearest one, or slices.

Times are int64 device ticks (100 ns) of one clock. Images and depth are never interpolated; poses are, by
`kitchensync.storage.timeline.pose_track`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kitchensync.shell.array_types import Int64
from kitchensync.sync.errors import NotIncreasing

Int32 = npt.NDArray[np.int32]

TOLERANCE_PERIODS = 0.6  # half a period reaches the nearest sample, the rest is for jitter


@dataclass(frozen=True, slots=True)
class Order:
    """Strictly increasing order of samples: `rows` of the original, and counts of repairs."""

    rows: Int64
    unsorted: int
    duplicates: int


def strictly_increasing(ticks: Int64) -> Order:
    """Sort stamps, keep the first of equal ones, and count both repairs."""
    rows = np.argsort(ticks, kind="stable").astype(np.int64)
    is_new = np.ones(len(rows), dtype=bool)
    is_new[1:] = np.diff(ticks[rows]) > 0
    unsorted = int((np.diff(ticks) < 0).sum())
    return Order(rows[is_new], unsorted, int(len(rows) - is_new.sum()))


def check_increasing(ticks: Int64, what: str) -> None:
    """Raise NotIncreasing at the first stamp that is not later than the one before."""
    late = np.flatnonzero(ticks[1:] <= ticks[:-1])
    if len(late):
        raise NotIncreasing(what, f"stamps must strictly increase, sample {int(late[0]) + 1} does not")


def tolerance_ticks(ticks: Int64) -> int:
    """Return the default tolerance of a stream: 0.6 of its median period."""
    return int(TOLERANCE_PERIODS * np.median(np.diff(ticks))) if len(ticks) > 1 else 0


def nearest(ticks: Int64, master_ticks: Int64, *, tolerance: int, what: str = "stream") -> Int32:
    """Return the index of the sample nearest to each master time, -1 beyond `tolerance`; the earlier of equal ones.

    Raises NotIncreasing unless `ticks` strictly increase.
    """
    check_increasing(ticks, what)
    if len(ticks) == 0:
        return np.full(len(master_ticks), -1, dtype=np.int32)
    after = np.searchsorted(ticks, master_ticks).clip(max=len(ticks) - 1)
    before = (after - 1).clip(min=0)
    before_wins = np.abs(ticks[before] - master_ticks) <= np.abs(ticks[after] - master_ticks)
    index = np.where(before_wins, before, after)
    return np.where(np.abs(ticks[index] - master_ticks) <= tolerance, index, -1).astype(np.int32)


def slices(ticks: Int64, master_ticks: Int64) -> tuple[Int64, Int64]:
    """Return half-open sample ranges [i0, i1) between each master time and the next.

    The last master frame gets one median period. Samples belong to exactly one frame; a sample stamped before its
    predecessor counts at the predecessor's time, so that ranges are contiguous. Raises NotIncreasing for the master.
    """
    ticks = np.maximum.accumulate(ticks) if len(ticks) else ticks
    check_increasing(master_ticks, "master")
    if len(master_ticks) == 0:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    period = int(np.median(np.diff(master_ticks))) if len(master_ticks) > 1 else 0
    edges = np.append(master_ticks, master_ticks[-1] + period)
    at = np.searchsorted(ticks, edges, side="left").astype(np.int64)
    return at[:-1], at[1:]


def offsets_us(ticks: Int64, index: Int32, master_ticks: Int64) -> Int32:
    """Return sample time minus master time in microseconds (int32), 0 without a sample."""
    if len(ticks) == 0:
        return np.zeros(len(index), dtype=np.int32)
    away = ticks[np.maximum(index, 0)] - master_ticks
    return np.where(index >= 0, np.rint(away / 10.0), 0).astype(np.int32)

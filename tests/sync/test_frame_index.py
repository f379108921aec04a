"""The frame index against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kitchensync.sync.align.nearest import (
    nearest,
    offsets_us,
    slices,
    strictly_increasing,
    tolerance_ticks,
)
from kitchensync.sync.errors import NotIncreasing

BIG = 133_875_715_436_816_907


def as_ticks(values):
    return np.array(values, dtype=np.int64)


stamps = st.lists(st.integers(BIG, BIG + 500), max_size=40, unique=True).map(sorted).map(as_ticks)
masters = st.lists(st.integers(BIG - 50, BIG + 550), max_size=40, unique=True).map(sorted).map(as_ticks)


@given(stamps, masters, st.integers(0, 300))
def test_nearest_agrees_with_brute_force(ticks, master, tolerance):
    found = nearest(ticks, master, tolerance=tolerance)
    assert found.dtype == np.int32
    for at, index in zip(master.tolist(), found.tolist(), strict=True):
        best = min(((abs(t - at), t) for t in ticks.tolist()), default=None)  # ties: the earlier one
        if best is None or best[0] > tolerance:
            assert index == -1
        else:
            assert ticks[index] == best[1]


@given(stamps, masters)
def test_nearest_never_goes_back(ticks, master):
    found = nearest(ticks, master, tolerance=10**6)
    assert (np.diff(found) >= 0).all()


@given(stamps, masters)
def test_slices_partition_the_samples(ticks, master):
    first, last = slices(ticks, master)
    assert len(first) == len(last) == len(master)
    assert (first[1:] == last[:-1]).all()
    for k in range(len(master) - 1):
        inside = [i for i, t in enumerate(ticks.tolist()) if master[k] <= t < master[k + 1]]
        assert list(range(first[k], last[k])) == inside


def test_a_slow_stream_is_used_six_times():
    master = BIG + np.arange(0, 60 * 333_333, 333_333, dtype=np.int64)
    depth = BIG + np.arange(0, 10 * 2_000_000, 2_000_000, dtype=np.int64)
    found = nearest(depth, master, tolerance=tolerance_ticks(depth))
    assert np.bincount(found[found >= 0])[1:-1].tolist() == [6] * 8


def test_a_dropped_frame_is_minus_one_and_shifts_nobody():
    master = BIG + np.arange(10, dtype=np.int64) * 333_333
    stream = np.delete(master + 1000, 4)
    found = nearest(stream, master, tolerance=tolerance_ticks(stream))
    assert found.tolist() == [0, 1, 2, 3, -1, 4, 5, 6, 7, 8]
    assert offsets_us(stream, found, master).tolist() == [100, 100, 100, 100, 0, 100, 100, 100, 100, 100]


def test_unsorted_and_repeated_stamps_are_put_right_and_reported():
    ticks = as_ticks([10, 30, 20, 20, 40])
    order = strictly_increasing(ticks)
    assert ticks[order.rows].tolist() == [10, 20, 30, 40]
    assert order.rows.tolist() == [0, 2, 1, 4]
    assert (order.unsorted, order.duplicates) == (1, 1)


def test_stamps_that_stand_still_are_refused():
    with pytest.raises(NotIncreasing, match="pv: .* sample 2"):
        nearest(as_ticks([1, 2, 2]), as_ticks([1]), tolerance=1, what="pv")

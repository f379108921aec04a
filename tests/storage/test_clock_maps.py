"""Clock maps against exact rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kitchensync.storage.errors import OutsideMap
from kitchensync.storage.timeline.clock_map import ClockMap, sample_rows
from kitchensync.storage.timeline.device_clock import host_clock

EPOCH = 133_875_715_436_816_907

maps = st.builds(
    ClockMap,
    epoch_ticks=st.integers(0, 2**62),
    t_mid_s=st.floats(0, 5000),
    coef=st.tuples(st.floats(-1e5, 1e5), st.floats(-0.02, 0.02), st.floats(-1e-9, 1e-9)),
    valid_s=st.just((0.0, 900.0)),
)


@given(maps, st.lists(st.floats(-10, 10_000), min_size=1, max_size=20))
def test_there_and_back_is_far_below_a_microsecond(clock_map, times):
    back = clock_map.to_media(clock_map.to_ticks(np.array(times)))
    assert np.abs(back - times).max() < 2e-7


@given(maps, st.floats(-10, 10_000))
def test_agrees_with_exact_fractions(clock_map, t_s):
    away = Fraction(t_s) - Fraction(clock_map.t_mid_s)
    tau = sum(Fraction(c) * away**k for k, c in enumerate(clock_map.coef))
    exact = clock_map.epoch_ticks + 10_000_000 * (Fraction(t_s) + tau)
    assert abs(int(clock_map.to_ticks(t_s)) - exact) < 3


def test_ticks_are_integers_at_a_filetime_epoch():
    plain = ClockMap(EPOCH, 0.0, (0.0, 0.0), (0.0, 1.0))
    ticks = plain.to_ticks(np.array([0.0, 1e-7, 2e-7, 0.5]))
    assert ticks.dtype == np.int64
    assert (ticks - EPOCH).tolist() == [0, 1, 2, 5_000_000]  # a float64 of this size steps by 16


def test_one_number_in_one_number_out():
    plain = ClockMap(EPOCH, 10.0, (1.5, 20e-6), (0.0, 60.0))
    assert int(plain.to_ticks(10.0)) == EPOCH + 115_000_000
    assert float(plain.to_media(EPOCH + 115_000_000)) == pytest.approx(10.0, abs=1e-9)


def test_survives_being_written():
    written = ClockMap(EPOCH, 450.1, (3.2, -41e-6), (0.0, 899.9))
    read = ClockMap.from_object({"epoch_hl2_qpc": EPOCH, "map": written.as_object()})
    assert read == written


@pytest.mark.parametrize("rate", [-1.0, float("nan"), 3.0])
def test_a_map_without_inverse_is_refused(rate):
    with pytest.raises(OutsideMap):
        ClockMap(0, 0.0, (0.0, rate), (0.0, 1.0))


@pytest.mark.parametrize(("last_s", "end_s"), [(59.4, 60.0), (60.0, 61.0), (10.093, 11.0)])
def test_samples_go_to_the_next_whole_second(last_s, end_s):
    rows = sample_rows(ClockMap(EPOCH, 5.0, (0.0, 0.0), (0.0, 10.0)), last_s)
    times = [row[0] for row in rows]
    assert len(rows) == 31
    assert times[0] == 0.0
    assert times[-1] == end_s
    assert np.allclose(np.diff(times), end_s / 30)
    assert all(isinstance(row[1], int) for row in rows)


def test_one_probe_gives_an_offset_and_none_gives_nothing():
    none = np.empty(0, dtype=np.int64)
    assert host_clock(none, none, none) is None
    clock = host_clock(np.array([1000]), np.array([3000]), np.array([EPOCH]))
    assert int(clock.to_host_ns(EPOCH)) == 2000
    assert clock.bound_ns >= 1000

"""Session time against a made headset: slow and uneven networks, drift, a step of its clock, a start anew."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_runs import examples

from kitchensync.storage.timeline.device_clock import host_clock
from kitchensync.storage.timeline.session_time import SessionTime

HOST0_NS = 8_000_000_000_000
TICKS0 = 612_345_678_901
MS = 1_000_000
S = 1_000_000_000


def device_ticks(host_ns, skew, break_s, step_ticks):
    """What the headset's clock shows: it drifts, and from `break_s` on it is `step_ticks` away."""
    since = np.asarray(host_ns, np.int64) - HOST0_NS
    ticks = TICKS0 + np.rint(since * (1 + skew) / 100).astype(np.int64)
    return ticks + np.where(since >= break_s * S, step_ticks, 0)


def made(seed, skew_ppm, break_s, step_ticks, seconds=120, hz=5):
    """Session time by exchanges whose ways take up to 35 ms each."""
    rng = np.random.default_rng(seed)
    send = HOST0_NS + np.arange(0, seconds * S, S // hz, dtype=np.int64)
    out, back = (rng.integers(MS // 5, 35 * MS, len(send)) for _ in range(2))
    at = send + out
    clock = host_clock(send, at + back, device_ticks(at, skew_ppm * 1e-6, break_s, step_ticks))
    return SessionTime(TICKS0, clock)


REBOOT = 1000 - TICKS0
"""The ticks begin near zero again."""
STEP = 3_600 * 10_000_000
NEVER = (1e9, 0)


@pytest.mark.promise("Everything is on one clock, with a bound that holds")
@pytest.mark.slow
@examples(30)
@given(
    st.integers(0, 1000),
    st.floats(-80, 80),
    st.sampled_from([NEVER, (61.3, REBOOT), (40.0, STEP), (77.7, -STEP // 2)]),
    st.lists(st.floats(0, 119), min_size=1, max_size=20),
)
def test_host_times_are_placed_within_the_stated_bound(seed, skew_ppm, broken, moments_s):
    break_s, step_ticks = broken
    time = made(seed, skew_ppm, break_s, step_ticks)
    away = [s for s in moments_s if abs(s - break_s) > 1.0]  # within the second of a break nobody can tell
    host_ns = HOST0_NS + np.rint(np.array(away) * S).astype(np.int64)
    truth = np.rint((host_ns - HOST0_NS) * np.where(np.array(away) < break_s, 1 + skew_ppm * 1e-6, 1.0))
    truth = truth + np.where(np.array(away) >= break_s, break_s * S * skew_ppm * 1e-6, 0.0)
    found = time.of_host(host_ns)
    assert (np.abs(found - truth) <= time.bound_ns).all()
    ticks = device_ticks(host_ns, skew_ppm * 1e-6, break_s, step_ticks)
    by_packet = time.of_ticks(ticks, near_host_ns=host_ns + 10 * MS)
    assert (np.abs(by_packet - truth) <= time.bound_ns).all()


@pytest.mark.slow
@examples(30)
@given(st.integers(0, 1000), st.sampled_from([(61.3, REBOOT), (40.0, STEP)]))
def test_packets_and_host_times_agree_also_after_a_start_anew(seed, broken):
    break_s, step_ticks = broken
    time = made(seed, 30.0, break_s, step_ticks)
    seconds = np.array([1.0, 39.0, 63.0, 90.0, 118.0])
    host_ns = HOST0_NS + np.rint(seconds * S).astype(np.int64)
    ticks = device_ticks(host_ns, 30e-6, break_s, step_ticks)
    by_packet = time.of_ticks(ticks, near_host_ns=host_ns + 10 * MS)
    assert (np.abs(by_packet - time.of_host(host_ns)) <= time.bound_ns + 1000).all()
    assert (np.diff(by_packet) > 0).all()


@examples(30)
@given(
    st.integers(0, 1000),
    st.floats(-80, 80),
    st.sampled_from([NEVER, (61.3, REBOOT), (40.0, STEP)]),
    st.lists(st.floats(0, 119), min_size=1, max_size=20),
)
def test_session_time_leads_back_to_the_host_time_it_came_from(seed, skew_ppm, broken, moments_s):
    time = made(seed, skew_ppm, *broken)
    host_ns = HOST0_NS + np.rint(np.array(moments_s) * S).astype(np.int64)
    assert (np.abs(time.to_host(time.of_host(host_ns)) - host_ns) <= 200).all()


def test_without_exchanges_ticks_are_placed_and_host_times_are_not():
    time = SessionTime(TICKS0, None)
    assert time.of_ticks([TICKS0, TICKS0 + 10_000_000]).tolist() == [0, S]
    assert time.of_host([HOST0_NS]) is None
    assert time.to_host([0]) is None
    assert time.bound_ns is None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_events_are_placed_far_better_than_a_quarter_of_the_probes_could(seed):
    time = made(seed, 25.0, *NEVER)
    host_ns = HOST0_NS + np.linspace(0, 119 * S, 500).astype(np.int64)
    error = time.of_host(host_ns) - (host_ns - HOST0_NS) * (1 + 25e-6)
    assert np.abs(error).max() < 4 * MS  # the middles of single exchanges are off by up to 17 ms

"""Device ticks to host time over networks that delay, lopsided paths, steps and restarts; truth known exactly."""

from __future__ import annotations

import numpy as np
import pytest

from kitchensync.storage.timeline.device_clock import host_clock
from kitchensync.storage.timeline.session_time import SessionTime

EPOCH = 133_875_715_436_816_907
HOST0 = 5 * 10**12
HOUR_S = 3600.0


def uniform(rng, n):
    return rng.uniform(0.0, 0.035, n)


def mostly_slow(rng, n):
    return 0.035 * rng.beta(2.0, 1.0, n)


def mostly_quick(rng, n):
    return np.minimum(rng.exponential(0.008, n), 0.035)


def steady(_, n):
    return np.zeros(n)


def slow_or_quick(rng, n):
    return np.where(rng.random(n) < 0.8, rng.uniform(0.02, 0.035, n), rng.uniform(0.0, 0.01, n))


def exchanges(
    seconds,
    rng,
    *,
    skew_ppm=0.0,
    random=uniform,
    back=None,
    fixed_s=0.005,
    extra_out_s=0.0,
    hz=1.0,
    wander=None,
):
    """Exchanges of a device whose clock runs fast by `skew_ppm` and by `wander(s)` seconds; also when it was read."""
    send = np.arange(0, int(seconds * 1e9), int(1e9 / hz), dtype=np.int64) + HOST0
    read = send + np.rint((fixed_s + extra_out_s + random(rng, len(send))) * 1e9).astype(np.int64)
    receive = read + np.rint((fixed_s + (back or random)(rng, len(send))) * 1e9).astype(np.int64)
    since = (read - HOST0) / 1e9
    fast = since * skew_ppm * 1e-6 + (wander(since) if wander else 0.0)
    return send, receive, EPOCH + np.rint((since + fast) * 1e7).astype(np.int64), read


@pytest.mark.slow
@pytest.mark.parametrize("hz", [1.0, 0.1])  # the recorder asks once a second; the rest is for other recorders
@pytest.mark.parametrize("random", [uniform, mostly_slow, mostly_quick, slow_or_quick])
@pytest.mark.parametrize("skew_ppm", [-50.0, 0.0, 50.0])
def test_an_hour_over_a_bad_network_is_known_to_two_milliseconds(random, hz, skew_ppm):
    rng = np.random.default_rng(7)
    send, receive, ticks, read = exchanges(HOUR_S, rng, skew_ppm=skew_ppm, random=random, hz=hz)
    clock = host_clock(send, receive, ticks)
    error = np.abs(clock.to_host_ns(ticks) - read)
    assert np.percentile(error, 99) < 2e6
    assert error.max() < clock.bound_ns < 18e6
    assert len(clock.lines) == 1


@pytest.mark.parametrize("random", [uniform, mostly_slow])
def test_rounds_of_five_a_second_as_the_recorder_asks(random):
    """`probe_clock.py`: each waits for the answer before it; five of them begin every second."""
    rng = np.random.default_rng(9)
    parts = [exchanges(HOUR_S, rng, skew_ppm=50.0, random=random) for _ in range(5)]
    send, receive, ticks, read = (np.concatenate(part) for part in zip(*parts, strict=True))
    later_ns = np.repeat(80_000_000 * np.arange(5), len(parts[0][0]))
    send, receive, read = send + later_ns, receive + later_ns, read + later_ns
    ticks = ticks + np.rint(later_ns / 100 * (1 + 50e-6)).astype(np.int64)
    clock = host_clock(send, receive, ticks)
    error = np.abs(clock.to_host_ns(ticks) - read)
    assert clock.probes == 18_000
    assert np.percentile(error, 99) < 2e6
    assert error.max() < clock.bound_ns < 18e6


@pytest.mark.slow
@pytest.mark.parametrize("hz", [1.0, 0.1])
@pytest.mark.parametrize(("there", "back"), [(mostly_slow, mostly_quick), (uniform, mostly_slow)])
def test_ways_that_are_not_alike_do_not_pull_the_clock_to_one_side(there, back, hz):
    """The middles of all exchanges lie 4 and 3 ms off. At one exchange in ten seconds only the bound is promised."""
    for seed in (8, 903, 905):
        rng = np.random.default_rng(seed)
        send, receive, ticks, read = exchanges(HOUR_S, rng, skew_ppm=50.0, random=there, back=back, hz=hz)
        clock = host_clock(send, receive, ticks)
        error = np.abs(clock.to_host_ns(ticks) - read)
        assert error.max() < clock.bound_ns
        if hz == 1.0:
            assert np.percentile(error, 99) < 2e6


@pytest.mark.slow
@pytest.mark.parametrize(("extra_s", "random"), [(0.010, uniform), (0.020, uniform), (0.010, steady)])
def test_a_lopsided_path_is_inside_the_bound(extra_s, random):
    send, receive, ticks, read = exchanges(
        HOUR_S, np.random.default_rng(1), skew_ppm=50.0, extra_out_s=extra_s, random=random
    )
    clock = host_clock(send, receive, ticks)
    error = np.abs(clock.to_host_ns(ticks) - read)
    assert error.min() > 0.4 * extra_s * 1e9  # nobody can see it
    assert error.max() < clock.bound_ns


def test_a_clock_that_bends_is_followed():
    def warming(s):
        return 4e-6 * 900.0 * np.exp(-s / 900.0)

    send, receive, ticks, read = exchanges(HOUR_S, np.random.default_rng(2), skew_ppm=20.0, wander=warming)
    clock = host_clock(send, receive, ticks)
    error = np.abs(clock.to_host_ns(ticks) - read)
    assert np.percentile(error, 99) < 2e6
    assert error.max() < clock.bound_ns


def test_a_restart_begins_a_stretch_of_its_own():
    rng = np.random.default_rng(3)
    send, receive, ticks, read = exchanges(1200.0, rng, skew_ppm=30.0)
    again = len(ticks) // 2
    ticks[again:] -= ticks[again] - 77  # the tick counter begins anew
    clock = host_clock(send, receive, ticks)
    assert [line.probes for line in clock.lines] == [again, len(ticks) - again]
    error = np.abs(clock.to_host_ns(ticks, near_host_ns=receive) - read)
    assert error.max() < clock.bound_ns
    assert np.abs(clock.to_ticks(read) - ticks).max() < clock.bound_ns / 100


@pytest.mark.parametrize("step_s", [-3600.0, -0.2, 0.2, 30.0])
def test_a_step_splits_the_model(step_s):
    rng = np.random.default_rng(4)
    send, receive, ticks, read = exchanges(1200.0, rng, skew_ppm=-40.0)
    ticks[700:] += round(step_s * 1e7)
    clock = host_clock(send, receive, ticks)
    assert len(clock.lines) == 2
    error = np.abs(clock.to_host_ns(ticks, near_host_ns=receive) - read)
    assert error.max() < clock.bound_ns < 15e6


def test_there_and_back_is_exact():
    send, receive, ticks, _ = exchanges(HOUR_S, np.random.default_rng(5), skew_ppm=50.0)
    clock = host_clock(send, receive, ticks)
    assert np.abs(clock.to_ticks(clock.to_host_ns(ticks)) - ticks).max() <= 1
    assert clock.to_host_ns(ticks).dtype == np.int64


def test_answers_before_their_questions_are_left_out():
    send, receive, ticks, read = exchanges(60.0, np.random.default_rng(6))
    receive[5] = send[5] - 10**9
    clock = host_clock(send, receive, ticks)
    assert clock.probes == len(ticks) - 1
    assert np.abs(clock.to_host_ns(ticks) - read).max() < clock.bound_ns


def test_a_host_whose_clock_is_slewed_makes_any_number_of_stretches():
    """Time daemons slew by 500 ppm for minutes: no crystals part so fast, so stretch follows stretch."""
    rng = np.random.default_rng(8)
    send, receive, ticks, read = exchanges(
        300.0, rng, random=lambda _, n: np.zeros(n), fixed_s=1e-4, wander=lambda s: 500e-6 * s
    )
    clock = host_clock(send, receive, ticks)
    assert len(clock.lines) > 64
    assert np.abs(clock.to_host_ns(ticks, near_host_ns=read) - read).max() <= clock.bound_ns
    assert np.abs(clock.to_ticks(read) - ticks).max() * 100 <= clock.bound_ns + 500_000
    assert int(clock.to_ticks(int(read[7]))) == clock.to_ticks(read)[7]


@pytest.mark.parametrize("gap_s", [1.0, 30.0])
@pytest.mark.parametrize("again_ticks", [0, 40 * 864_000_000_000])
def test_what_comes_around_a_restart_is_placed_by_the_clock_that_it_was_stamped_by(
    gap_s: float, again_ticks: int
) -> None:
    """No exchange sees when the device is started anew; packets come in all of the time between two exchanges."""
    first_ticks, start_ns = 864_000_000_000, 10**12
    probed_ns = start_ns + np.arange(0, 60, 1) * 10**9
    broke_ns = int(probed_ns[-1]) + round(gap_s * 1e9)
    again_ns = broke_ns + np.arange(0, 60, 1) * 10**9
    read_ns = np.concatenate([probed_ns, again_ns])
    ticks = np.concatenate(
        [first_ticks + (probed_ns - start_ns) // 100, again_ticks + (again_ns - broke_ns) // 100]
    )
    clock = host_clock(read_ns - 10**6, read_ns + 10**6, ticks)
    assert clock is not None
    assert len(clock.lines) == 2
    for share in (0.05, 0.45, 0.55, 0.95):
        at_ns = int(probed_ns[-1] + share * gap_s * 1e9)
        old, new = first_ticks + (at_ns - start_ns) // 100, again_ticks + (at_ns - broke_ns) // 100
        for stamped in (old, new):
            near_ns = np.array([at_ns + 40 * 10**6])
            assert abs(clock.to_host_ns(np.array([stamped]), near_host_ns=near_ns)[0] - at_ns) < 5 * 10**6
            session_ns = SessionTime(first_ticks, clock).of_ticks(np.array([stamped]), near_host_ns=near_ns)
            assert abs(session_ns[0] - (at_ns - start_ns)) < 10 * 10**6

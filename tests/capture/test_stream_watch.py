"""What is said of a stream's rate and stamps: pure, from numbers alone."""

from __future__ import annotations

from kitchensync.capture.produce.stream_watch import (
    RATE_LOW,
    SLOW_BY_ITSELF,
    STALLED,
    STREAMING,
    RateWatch,
    StampWatch,
)

S = 1_000_000_000


def conditions(hz_by_second: list[float], nominal_hz: float, *, adaptive: bool) -> list[str]:
    """Look every quarter second at a stream that sends at these rates, second after second."""
    watch, received, last_ns, seen = RateWatch(nominal_hz, adaptive=adaptive), 0.0, 0, []
    for second, hz in enumerate(hz_by_second):
        for quarter in range(4):
            now_ns = (second * 4 + quarter + 1) * S // 4
            received += hz / 4
            last_ns = now_ns if hz else last_ns
            watch.look(now_ns, int(received), last_ns)
        seen.append(watch.condition)
    return seen


def test_a_steady_stream_streams() -> None:
    assert set(conditions([30.0] * 20, 30.0, adaptive=False)) == {STREAMING}


def test_a_slow_stream_is_named_and_recovers() -> None:
    seen = conditions([30.0] * 8 + [15.0] * 10 + [30.0] * 10, 30.0, adaptive=False)
    assert seen[17] == RATE_LOW
    assert seen[-1] == STREAMING


def test_depth_slows_down_by_itself() -> None:
    assert conditions([45.0] * 8 + [5.0] * 10, 45.0, adaptive=True)[-1] == SLOW_BY_ITSELF


def test_silence_is_a_stall_and_ends() -> None:
    seen = conditions([30.0] * 8 + [0.0] * 4 + [30.0] * 4, 30.0, adaptive=False)
    assert STALLED in seen[8:12]
    assert seen[-1] == STREAMING


def test_a_slow_sensor_is_not_stalled_between_its_packets() -> None:
    watch = RateWatch(0.5, adaptive=False)
    assert watch.look(3 * S, 1, 1 * S) is None


def test_stamps() -> None:
    watch = StampWatch()
    assert watch.flag(100, 0) is None
    assert watch.flag(330_100, S // 30) is None
    assert watch.flag(330_100, S // 15) == ("same", 330_100)
    assert watch.flag(100, S // 10) == ("back", 330_100)
    assert watch.flag(100 + 5 * 10_000_000, S // 10 + S // 30) == ("jump", 100)
    assert watch.flag(100 + 7 * 10_000_000, 3 * S) is None, "two seconds in two seconds"

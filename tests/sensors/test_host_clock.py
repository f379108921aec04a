import time

from kitchensync.shell.host_clock import host_ns, utc_anchor


def test_host_clock_is_monotonic_and_integer() -> None:
    before, here, after = time.monotonic_ns(), host_ns(), time.monotonic_ns()
    assert isinstance(here, int)
    assert before <= here <= after


def test_the_anchor_is_between_readings_before_and_after() -> None:
    mono0, utc0 = time.monotonic_ns(), time.time_ns()
    anchor = utc_anchor()
    assert mono0 <= anchor.host_ns <= time.monotonic_ns()
    assert utc0 - 1_000_000_000 <= anchor.utc_ns <= time.time_ns() + 1_000_000_000

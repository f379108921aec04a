"""A computer that slept, a process that was held: seen from two clocks."""

from __future__ import annotations

import time

import pytest

from capture.pause import LATE_NS, PauseWatch

SECOND = 10**9


@pytest.fixture
def clocks(monkeypatch):
    """The two clocks of the system, ours to move."""
    now = {"monotonic": 100 * SECOND, "boot": 150 * SECOND}
    monkeypatch.setattr(time, "monotonic_ns", lambda: now["monotonic"])
    monkeypatch.setattr(time, "clock_gettime_ns", lambda clock: now["boot"])
    return now


def test_sleep_stops_one_clock_and_not_the_other(clocks):
    watch = PauseWatch()
    clocks["monotonic"] += SECOND // 4
    clocks["boot"] += 30 * SECOND
    assert watch.look() == (100 * SECOND, 100 * SECOND + SECOND // 4)
    assert watch.look() is None


def test_a_held_process_sees_both_clocks_run_on(clocks):
    watch = PauseWatch()
    clocks["monotonic"] += 3 * SECOND
    clocks["boot"] += 3 * SECOND
    assert watch.look() == (100 * SECOND, 103 * SECOND)


def test_a_busy_computer_is_no_pause(clocks):
    watch = PauseWatch()
    for _ in range(5):
        clocks["monotonic"] += LATE_NS
        clocks["boot"] += LATE_NS
        assert watch.look() is None

"""A computer that slept, a process that was held: seen from two clocks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from capture.process.pause import LATE_NS, PauseWatch

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
    assert watch.look() == (100 * SECOND, 100 * SECOND + SECOND // 4, True)
    assert watch.look() is None


def test_a_held_process_sees_both_clocks_run_on(clocks):
    watch = PauseWatch()
    clocks["monotonic"] += 3 * SECOND
    clocks["boot"] += 3 * SECOND
    assert watch.look() == (100 * SECOND, 103 * SECOND, False)


def test_a_busy_computer_is_no_pause(clocks):
    watch = PauseWatch()
    for _ in range(5):
        clocks["monotonic"] += LATE_NS
        clocks["boot"] += LATE_NS
        assert watch.look() is None


@pytest.mark.slow
def test_only_a_held_process_has_a_pause_and_not_one_that_waits_for_something():
    """What the producer's main thread waits for, a queue that does not answer say, is no pause."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with child:
        assert child.stdout.readline() == "waited []\n"
        os.kill(child.pid, signal.SIGSTOP)
        time.sleep(2.5)
        os.kill(child.pid, signal.SIGCONT)
        child.stdin.write("go on\n")
        child.stdin.flush()
        (pause,) = json.loads(child.stdout.readline())
    start_ns, end_ns, slept = pause
    assert end_ns - start_ns > 2.4 * SECOND
    assert not slept


CHILD = """
import json, sys, time
from capture.process.pause import PauseThread
pauses = PauseThread()
pauses.start()
time.sleep(2.5)
print("waited", pauses.taken(), flush=True)
sys.stdin.readline()
time.sleep(1)
print(json.dumps(pauses.taken()), flush=True)
pauses.stop()
"""

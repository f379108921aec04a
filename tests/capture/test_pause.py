"""Sleep of the computer and suspended processes, detected with two clocks."""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import until

from kitchensync.capture.process.pause import LATE_NS, PauseWatch

SECOND = 10**9


@pytest.fixture
def clocks(monkeypatch):
    """The two clocks of the system, moved by the test."""
    now = {"monotonic": 100 * SECOND, "boot": 150 * SECOND}
    monkeypatch.setattr(time, "monotonic_ns", lambda: now["monotonic"])
    monkeypatch.setattr(time, "clock_gettime_ns", lambda clock: now["boot"])
    return now


def test_sleep_stops_one_clock_and_not_the_other(clocks):
    watch = PauseWatch()
    clocks["monotonic"] += SECOND // 4
    clocks["boot"] += 30 * SECOND
    assert watch.check() == (100 * SECOND, 100 * SECOND + SECOND // 4, True)
    assert watch.check() is None


def test_a_held_process_sees_both_clocks_run_on(clocks):
    watch = PauseWatch()
    clocks["monotonic"] += 3 * SECOND
    clocks["boot"] += 3 * SECOND
    assert watch.check() == (100 * SECOND, 103 * SECOND, False)


def test_a_busy_computer_is_not_a_pause(clocks):
    watch = PauseWatch()
    for _ in range(5):
        clocks["monotonic"] += LATE_NS
        clocks["boot"] += LATE_NS
        assert watch.check() is None


@pytest.mark.slow
def test_only_a_suspended_process_has_a_pause_not_a_waiting_one(tmp_path):
    """A wait of the producer's main thread, such as for an unresponsive queue, is not a pause."""
    file = tmp_path / "clock"
    file.write_bytes(bytes(16))
    with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 16) as shared, running(file) as child:
        clock = memoryview(shared).cast("q")
        wait_for_reads(clock)
        for _ in range(12):
            clock[0] += SECOND // 4
            wait_for_reads(clock)
        assert new_pauses(child) == [], "its main thread waited for three seconds"
        os.kill(child.pid, signal.SIGSTOP)
        os.waitpid(child.pid, os.WUNTRACED)
        for _ in range(12):
            clock[0] += SECOND // 4
        os.kill(child.pid, signal.SIGCONT)
        wait_for_reads(clock)
        assert new_pauses(child) == [[3 * SECOND, 6 * SECOND, False]]
        clock.release()


@contextlib.contextmanager
def running(clock: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that reads its clock from a file: the first number is the time, the second counts the reads."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", CHILD, str(clock)]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as child:
        try:
            yield child
        finally:
            child.kill()


def wait_for_reads(clock: memoryview) -> None:
    """Wait for three reads: the first may have begun before, and the second is used only before the third."""
    before = clock[1]
    until(lambda: clock[1] >= before + 3, "three reads")


def new_pauses(child: subprocess.Popen[str]) -> list[list[int]]:
    child.stdin.write("go on\n")
    child.stdin.flush()
    return json.loads(child.stdout.readline())


CHILD = """
import json, mmap, sys
from kitchensync.capture.process import pause

with open(sys.argv[1], "r+b") as file:
    clock = memoryview(mmap.mmap(file.fileno(), 16)).cast("q")

def clocks():
    now_ns = clock[0]
    clock[1] += 1
    return now_ns, now_ns

pause._clocks, pause.PERIOD_S = clocks, 0.01
pauses = pause.PauseThread()
pauses.start()
while sys.stdin.readline():
    print(json.dumps(pauses.take_new()), flush=True)
pauses.stop()
"""

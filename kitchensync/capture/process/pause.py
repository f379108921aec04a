"""Detect times in which this computer slept or this process was stopped, and nothing was received."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import NamedTuple

from kitchensync.shell.host_clock import slept_ns

LATE_NS = 1_500_000_000
"""Delay of a quarter-second loop that is too long for a merely busy computer."""

PERIOD_S = 0.25  # well below LATE_NS, which a delay of one round has to exceed


class Pause(NamedTuple):
    """A time in which this process did not run, in host_ns; a suspend has almost no length on that clock."""

    start_ns: int
    end_ns: int
    slept: bool
    """Whether the whole computer slept."""


class PauseWatch:
    """Compares two clocks, of which only one stops while the computer sleeps."""

    def __init__(self) -> None:
        self._monotonic_ns, self._boot_ns = _clocks()

    def check(self) -> Pause | None:
        """Return the pause since the last call, None if there was none."""
        before_ns, before_boot_ns = self._monotonic_ns, self._boot_ns
        self._monotonic_ns, self._boot_ns = _clocks()
        slept_ns = (self._boot_ns - before_boot_ns) - (self._monotonic_ns - before_ns)
        if slept_ns > LATE_NS or self._monotonic_ns - before_ns > LATE_NS:
            return Pause(before_ns, self._monotonic_ns, slept_ns > LATE_NS)
        return None


class PauseThread(threading.Thread):
    """Thread that only detects pauses, so that the waits of other threads do not look like pauses."""

    def __init__(self) -> None:
        super().__init__(name="pauses", daemon=True)
        self._ending = threading.Event()
        self._pauses: deque[Pause] = deque()

    def run(self) -> None:
        """Check four times a second until stopped."""
        watch = PauseWatch()
        while not self._ending.wait(PERIOD_S):
            if pause := watch.check():
                self._pauses.append(pause)

    def stop(self) -> None:
        """End soon."""
        self._ending.set()

    def take_new(self) -> list[Pause]:
        """Return the pauses since the last call."""
        return [self._pauses.popleft() for _ in range(len(self._pauses))]


def _clocks() -> tuple[int, int]:
    monotonic_ns = time.monotonic_ns()
    return monotonic_ns, monotonic_ns + slept_ns()

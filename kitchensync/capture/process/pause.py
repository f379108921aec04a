"""Notices when this computer slept, or this process was held: the time in which nobody received."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import NamedTuple

from kitchensync.shell.host_clock import slept_ns

LATE_NS = 1_500_000_000
"""A loop of a quarter second that comes this late was held up by more than a busy computer."""

PERIOD_S = 0.25


class Pause(NamedTuple):
    """A time in which nothing of this process ran."""

    start_ns: int
    end_ns: int
    "Both host_ns: the pause of a suspend has almost no length on that clock."
    slept: bool
    "The whole computer slept; else this process was held, and maybe others."


class PauseWatch:
    """Looks at two clocks: one stops while the computer sleeps, the other goes on."""

    def __init__(self) -> None:
        """Begin now."""
        self._monotonic_ns, self._boot_ns = _clocks()

    def look(self) -> Pause | None:
        """Return the pause since the last look, None when there was none."""
        before_ns, before_boot_ns = self._monotonic_ns, self._boot_ns
        self._monotonic_ns, self._boot_ns = _clocks()
        slept_ns = (self._boot_ns - before_boot_ns) - (self._monotonic_ns - before_ns)
        if slept_ns > LATE_NS or self._monotonic_ns - before_ns > LATE_NS:
            return Pause(before_ns, self._monotonic_ns, slept_ns > LATE_NS)
        return None


class PauseThread(threading.Thread):
    """Looks four times a second and does nothing else: what its process waits for does not look like a pause."""

    def __init__(self) -> None:
        """Begin at `start`."""
        super().__init__(name="pauses", daemon=True)
        self._ending = threading.Event()
        self._seen: deque[Pause] = deque()

    def run(self) -> None:
        """Look until stopped."""
        watch = PauseWatch()
        while not self._ending.wait(PERIOD_S):
            if pause := watch.look():
                self._seen.append(pause)

    def stop(self) -> None:
        """End soon."""
        self._ending.set()

    def taken(self) -> list[Pause]:
        """Return the pauses that nobody has taken yet."""
        return [self._seen.popleft() for _ in range(len(self._seen))]


def _clocks() -> tuple[int, int]:
    monotonic_ns = time.monotonic_ns()
    return monotonic_ns, monotonic_ns + slept_ns()

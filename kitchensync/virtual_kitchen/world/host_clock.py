"""The clock that drives a world: the computer's own, or one that a test moves."""

from __future__ import annotations

import threading
import time


class ComputerClock:
    """The computer's monotonic clock."""

    def now_ns(self) -> int:
        """Return the host time."""
        return time.monotonic_ns()

    def nap(self, waker: threading.Event, seconds: float) -> bool:
        """Wait at most this long; return True if `waker` ended it. Callers check the host time again."""
        return waker.wait(seconds)

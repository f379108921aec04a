"""The clock by which a world goes: the computer's own, or one that a test moves."""

from __future__ import annotations

import threading
import time


class ComputerClock:
    """The computer's monotonic clock."""

    def now_ns(self) -> int:
        """Return the host time."""
        return time.monotonic_ns()

    def nap(self, waker: threading.Event, seconds: float) -> bool:
        """Rest for so long at most; True when `waker` ended it. Who waits for a host time looks again then."""
        return waker.wait(seconds)

"""A clock for a virtual kitchen that the test moves: what it films does not depend on how busy the computer is."""

from __future__ import annotations

import threading

from kitchensync.virtual_kitchen.world.host_clock import ComputerClock

LOOK_S = 0.005


class MovedClock(ComputerClock):
    """Stands until it is moved; one that runs goes with the computer's, and jumps ahead when it is moved."""

    def __init__(self, *, runs: bool = False) -> None:
        self._state = (0 if runs else super().now_ns(), runs)
        "What it is ahead of the computer's, or where it stands; both at once, for other threads look."

    def now_ns(self) -> int:
        """Return the host time of this world."""
        ns, runs = self._state
        return ns + super().now_ns() if runs else ns

    def move(self, seconds: float) -> None:
        """Let so much time pass at once."""
        ns, runs = self._state
        self._state = (ns + round(seconds * 1e9), runs)

    def stand(self) -> None:
        """Stand still from now on."""
        self._state = (self.now_ns(), False)

    def run(self) -> None:
        """Go on, with the computer's."""
        self._state = (self.now_ns() - super().now_ns(), True)

    def nap(self, waker: threading.Event, seconds: float) -> bool:
        """Look again soon: it may have been moved."""
        return waker.wait(min(seconds, LOOK_S))

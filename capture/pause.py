"""Notices when this computer slept, or this process was held: the time in which nobody received."""

from __future__ import annotations

import time

LATE_NS = 1_500_000_000
"""A loop of a quarter second that comes this late was held up by more than a busy computer."""


class PauseWatch:
    """Looks at two clocks: one stops while the computer sleeps, the other goes on."""

    def __init__(self) -> None:
        """Begin now."""
        self._monotonic_ns, self._boot_ns = _clocks()

    def look(self) -> tuple[int, int] | None:
        """Return (start, end) in host_ns of a pause since the last look, None when there was none.

        During sleep CLOCK_MONOTONIC stands still, so the pause of a suspend has almost no length on it.
        """
        before_ns, before_boot_ns = self._monotonic_ns, self._boot_ns
        self._monotonic_ns, self._boot_ns = _clocks()
        slept_ns = (self._boot_ns - before_boot_ns) - (self._monotonic_ns - before_ns)
        if slept_ns > LATE_NS or self._monotonic_ns - before_ns > LATE_NS:
            return before_ns, self._monotonic_ns
        return None


def _clocks() -> tuple[int, int]:
    monotonic_ns = time.monotonic_ns()
    boot_clock = getattr(time, "CLOCK_BOOTTIME", None)
    return monotonic_ns, time.clock_gettime_ns(boot_clock) if boot_clock is not None else monotonic_ns

"""The recorder's clock: integers of nanoseconds since boot, and one link to wall time."""

from __future__ import annotations

import time
from dataclasses import dataclass

ANCHOR_TRIES = 5


@dataclass(frozen=True)
class UtcAnchor:
    """One moment read on both clocks of this computer."""

    host_ns: int
    "CLOCK_MONOTONIC, nanoseconds."
    utc_ns: int
    "UTC, nanoseconds since 1970-01-01, as good as this computer's NTP."


def host_ns() -> int:
    """Read CLOCK_MONOTONIC in integer nanoseconds, the one clock that every host stamp is on."""
    return time.monotonic_ns()


def utc_anchor() -> UtcAnchor:
    """Read both clocks as near to one moment as can be: the tightest of a few tries.

    The monotonic reading is the middle of the two that enclose the UTC reading.
    """
    best: tuple[int, UtcAnchor] | None = None
    for _ in range(ANCHOR_TRIES):
        before = time.monotonic_ns()
        utc_ns = time.time_ns()
        after = time.monotonic_ns()
        if best is None or after - before < best[0]:
            best = after - before, UtcAnchor(before + (after - before) // 2, utc_ns)
    assert best is not None
    return best[1]

"""When a battery or a card was changed in the middle of a recording, as who ran it said."""

from __future__ import annotations

from pathlib import Path

from kitchensync.storage.events import events_of
from kitchensync.storage.privacy import OPERATOR

SWAP, SWAPPED = "swap", "swapped"
DEVICE_SWAP = "device_swap"
"""The cause of what is missing then."""
LONGEST_NS = 600_000_000_000
"""A change that nobody ended is over after ten minutes."""


def swaps_of(recording: Path) -> list[tuple[int, int]]:
    """Return start and end (host_ns) of each change; the last may be going on. Raises BadEventLog."""
    swaps: list[tuple[int, int]] = []
    for event in events_of(recording, OPERATOR):
        at_ns = int(event["host_ns"])
        if event["kind"] == SWAP and (not swaps or at_ns > swaps[-1][1]):
            swaps.append((at_ns, at_ns + LONGEST_NS))
        elif event["kind"] == SWAPPED and swaps and at_ns < swaps[-1][1]:
            swaps[-1] = (swaps[-1][0], at_ns)
    return swaps

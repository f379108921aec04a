"""Times when the operator changed a battery or a card during a recording."""

from __future__ import annotations

from pathlib import Path

from kitchensync.storage.events import events_of
from kitchensync.storage.privacy import OPERATOR

SWAP, SWAPPED = "swap", "swapped"
DEVICE_SWAP = "device_swap"
"""Cause of gaps in this time."""
LONGEST_NS = 600_000_000_000
"""A change without an end is taken to last ten minutes."""


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

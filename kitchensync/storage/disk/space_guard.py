"""How long the disk still lasts: a warning in good time, and a stop before zero."""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

OK, WARN, STOP = "ok", "warn", "stop"

Sample = tuple[int, int]
"""host_ns, free bytes."""

WARN_MINUTES, STOP_MINUTES = 15.0, 0.5
KEEP_EVERY_NS, LOOKS_KEPT = 1_000_000_000, 240  # the last quarter of the looks is longer than SEALING_NS
SEALING_NS = 20_000_000_000
"""Chunks are sealed in bursts of some seconds: a rate over less than this says little about the minutes to come."""
RECENT_NS = 4_000_000_000
RECENT_STOP_MINUTES = 0.25
"""A disk that something else fills will not wait for minutes. But a large file that somebody copies ends by itself:
the rate of the last seconds stops a recording only where a clean end would soon want the space."""


@dataclass(frozen=True)
class Outlook:
    """What the guard says."""

    level: str
    free_bytes: int
    minutes_left: float
    "Until only the reserve is free; infinity where nothing is used up."

    @property
    def text(self) -> str:
        """One line for the operator."""
        left = f"{self.minutes_left:.0f} minutes left" if self.minutes_left < 600 else "hours left"
        return f"{self.free_bytes / 1e9:.1f} GB free, {left}"

    def facts(self) -> dict[str, Any]:
        """Return the same for programs; no minutes where nothing is used up."""
        minutes = round(self.minutes_left, 1) if isfinite(self.minutes_left) else None
        return {"level": self.level, "free_bytes": self.free_bytes, "minutes_left": minutes}


def bytes_per_minute(samples: Sequence[Sample]) -> float:
    """Return how fast free space goes: the faster of the whole window and its last quarter, never negative.

    Each counts where it is long enough to hold a burst of chunks, and the pause after it.
    """
    quarter = samples[-max(len(samples) // 4, 2) :]
    long_enough = (part for part in (samples, quarter) if part[-1][0] - part[0][0] >= SEALING_NS)
    return max([0.0, *map(_slope, long_enough)])


def _slope(samples: Sequence[Sample]) -> float:
    (first_ns, first_free), (last_ns, last_free) = samples[0], samples[-1]
    return (first_free - last_free) / ((last_ns - first_ns) / 60e9)


def outlook(samples: Sequence[Sample], *, reserve_bytes: int) -> Outlook:
    """Predict from the samples, oldest first.

    stop: the reserve is reached, or would be within STOP_MINUTES, or within RECENT_STOP_MINUTES at the rate of the
    last seconds alone; warn: within WARN_MINUTES.
    """
    free = samples[-1][1]
    spare = free - reserve_bytes
    minutes = _minutes(spare, bytes_per_minute(samples))
    old = [sample for sample in samples if sample[0] <= samples[-1][0] - RECENT_NS]
    at_once = _minutes(spare, max(_slope([old[-1], samples[-1]]), 0.0) if old else 0.0)
    if minutes < STOP_MINUTES or at_once < RECENT_STOP_MINUTES:
        level = STOP
    else:
        level = WARN if minutes < WARN_MINUTES else OK
    return Outlook(level, free, minutes)


def _minutes(spare: int, rate: float) -> float:
    if spare <= 0:
        return 0.0
    return spare / rate if rate > 0 else float("inf")


class DiskGuard:
    """Looks at the disk now and then; the recorder asks it and acts."""

    def __init__(self, path: Path, *, reserve_bytes: int) -> None:
        """`path` lies on the disk."""
        self._path, self._reserve_bytes = path, reserve_bytes
        self._samples: deque[Sample] = deque(maxlen=LOOKS_KEPT)

    def look(self, host_ns: int) -> Outlook:
        """Take one look at the disk. Raises OSError when it cannot be asked."""
        now = (host_ns, shutil.disk_usage(self._path).free)
        if not self._samples or host_ns - self._samples[-1][0] >= KEEP_EVERY_NS:
            self._samples.append(now)
        return outlook([*self._samples, now], reserve_bytes=self._reserve_bytes)

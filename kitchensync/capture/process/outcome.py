"""Final status of a recording."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from kitchensync.capture.process.log import warn

NO_SPACE = "no_space"
"""Reason of an end, and what a drainer without room says."""


@dataclass
class Outcome:
    """How a recording went, as seen while it was made."""

    reason: str = ""
    restarts: list[dict[str, Any]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What befell it and did no harm by itself."""
    first_packets: bool = False
    missing: dict[str, str] = field(default_factory=dict)
    """Streams that gave nothing when it began all the same, and why."""
    aside: dict[str, str] = field(default_factory=dict)
    """Streams that could not be stored, and why: their packets are still in the queue."""

    def restarted(self, name: str, code: int | None) -> None:
        """Note that a process died with this code and is started again."""
        warn("process died and is started again", died=name, exit=code)
        self.restarts.append({"process": name, "exit": code, "host_ns": time.monotonic_ns()})

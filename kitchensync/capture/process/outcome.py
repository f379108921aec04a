"""Final status of a recording."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from kitchensync.capture.process.log import log_warning

NO_SPACE = "no_space"
"""Reason of an end, and the problem that a drainer reports on a full disk."""


@dataclass
class Outcome:
    """How a recording went."""

    reason: str = ""
    restarts: list[dict[str, Any]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Harmless incidents."""
    first_packets: bool = False
    missing: dict[str, str] = field(default_factory=dict)
    """Streams without a packet when the recording began with an override, with their states."""
    aside: dict[str, str] = field(default_factory=dict)
    """Streams that could not be stored, with the reasons; their packets are still queued."""

    def restarted(self, name: str, code: int | None) -> None:
        """Note that a process died with this exit code and is restarted."""
        log_warning("process died and is started again", died=name, exit=code)
        self.restarts.append({"process": name, "exit": code, "host_ns": time.monotonic_ns()})

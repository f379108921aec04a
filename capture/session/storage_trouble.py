"""What keeps packets from being stored while a recording is made: they stay in the queue, and somebody is told."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from capture.errors import QueueUnavailable
from capture.plan import Plan
from capture.process.health import HealthBoard
from capture.process.log import warn
from capture.process.outcome import NO_SPACE
from capture.queue import stream_queue as queue
from storage.names import MANIFEST

FULL = 0.8
"""Share of the queue's memory at which a recording ends whose packets cannot be stored."""
LOOK_S = 1.0


class StorageTrouble:
    """Looks at what the drainers say, and whether the recording's folder is there."""

    def __init__(self, plan: Plan, board: HealthBoard) -> None:
        """Look at nothing yet."""
        self._plan, self._board = plan, board
        self._manifest = Path(plan.path) / MANIFEST
        self._asked_s = 0.0
        self.is_gone = self._was_there = False
        self._hopeless_since_s: float | None = None

    def look(self) -> None:
        """Look again: has somebody renamed, moved or unmounted the recording under our hands?"""
        is_there = os.path.exists(self._manifest)
        self._was_there = self._was_there or is_there
        is_gone = self._was_there and not is_there
        if is_gone and not self.is_gone:
            warn("the recording's folder is gone", path=self._plan.path)
        self.is_gone = is_gone
        is_hopeless = is_gone or self.lacks_space()
        self._hopeless_since_s = (self._hopeless_since_s or time.monotonic()) if is_hopeless else None

    def hopeless_s(self) -> float:
        """Return for how many seconds no stream at all could be stored, by the last looks."""
        return 0.0 if self._hopeless_since_s is None else time.monotonic() - self._hopeless_since_s

    def lacks_space(self) -> bool:
        """Tell whether a drainer or the queue finds no room on its disk."""
        return any(state.get("problem") == NO_SPACE for state in self._board.states.values())

    def aside(self) -> dict[str, str]:
        """Return the streams that drainers have set aside, and why."""
        said = [state.get("aside", {}) for state in self._board.states.values()]
        return {stream: str(why) for aside in said for stream, why in aside.items()}

    def words(self) -> list[str]:
        """Say all of it in words, but for the full disk, which is shown otherwise."""
        words = [f"{self._plan.path} is gone: put it back; until then all packets stay in the queue"]
        words = words if self.is_gone else []
        words += [
            f"{stream} cannot be stored ({why}); its packets stay in the queue, the other streams go on"
            for stream, why in sorted(self.aside().items())
        ]
        told: set[Any] = {state.get("problem") for state in self._board.states.values()} - {
            None,
            "",
            NO_SPACE,
        }
        waiting = sorted(map(str, told))
        return words + [f"a drainer cannot go on: {why}; its packets stay in the queue" for why in waiting]

    def fills_queue(self) -> bool:
        """Tell whether packets that cannot be stored have nearly filled the queue: then everybody's would be lost."""
        now_s = time.monotonic()
        if not (self.is_gone or self.aside()) or now_s - self._asked_s < LOOK_S:
            return False
        self._asked_s = now_s
        try:
            with queue.reached(self._plan.queue_url) as client:
                return queue.share_of_memory(client) > FULL
        except QueueUnavailable:
            return False  # it is being started again

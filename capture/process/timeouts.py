"""How long the end of a recording waits for its drainers: for as long as they get on."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Patience:
    """Watches what the drainers have stored."""

    _stored: int = -1
    _since_s: float = field(default_factory=time.monotonic)
    _killed: bool = False

    def look(self, states: dict[str, dict[str, Any]]) -> float:
        """Return for how many seconds nothing more was stored, by the newest states of all processes."""
        facts = [stream for state in states.values() for stream in state.get("streams", {}).values()]
        stored = sum(int(stream.get("stored", 0)) for stream in facts)
        if stored != self._stored:
            self._stored, self._since_s = stored, time.monotonic()
        return time.monotonic() - self._since_s

    def is_time_to_kill(self, limit_s: float) -> bool:
        """Tell once, when nothing was stored for this long, that what hangs is to be killed."""
        if self._killed or time.monotonic() - self._since_s < limit_s:
            return False
        self._killed = True
        return True

"""Recordings of the virtual GoPro: their interface, and the one that hands out a real file."""

from __future__ import annotations

import enum
import threading
from typing import Protocol

from kitchensync.virtual_kitchen.errors import KitchenError
from kitchensync.virtual_kitchen.kitchen import Kitchen


class Phase(enum.Enum):
    """Phases of a recording."""

    IDLE = "idle"
    STARTING = "starting"
    ENCODING = "encoding"
    FINALISING = "finalising"


class WrongState(KitchenError):
    """The camera cannot follow a command in its current state."""


class FilmedClip(Protocol):
    """One recording, from the shutter start to the closed file."""

    def stop(self) -> float:
        """End it now and return the world time of that."""
        ...

    def abandon(self) -> None:
        """Abandon it immediately."""
        ...

    def record(self) -> bool:
        """Run it to its end; return False if abandoned."""
        ...


class ReplayClip:
    """A recording that hands out a real file: it writes nothing and lasts until the stop."""

    def __init__(self, kitchen: Kitchen) -> None:
        """Make a recording that has not ended."""
        self._kitchen = kitchen
        self._stopped = threading.Event()
        self._is_abandoned = False
        self._stop_world_s = 0.0

    def stop(self) -> float:
        """End it now and return the world time of that."""
        if not self._stopped.is_set():
            self._stop_world_s = self._kitchen.now_s()
            self._stopped.set()
        return self._stop_world_s

    def abandon(self) -> None:
        """Abandon it immediately."""
        self._is_abandoned = True
        self.stop()

    def record(self) -> bool:
        """Wait for the end; return False if abandoned."""
        self._stopped.wait()
        return not self._is_abandoned

"""What a recording of the virtual GoPro is to its camera, and the one that hands out a real file."""

from __future__ import annotations

import enum
import threading
from typing import Protocol

from kitchensync.virtual_kitchen.errors import KitchenError
from kitchensync.virtual_kitchen.kitchen import Kitchen


class Phase(enum.Enum):
    """Where the camera stands between two shutter commands."""

    IDLE = "idle"
    STARTING = "starting"
    ENCODING = "encoding"
    FINALISING = "finalising"


class WrongState(KitchenError):
    """Refuse a command that the camera cannot follow now."""


class FilmedClip(Protocol):
    """One recording, from the shutter's start to the closed file."""

    def stop(self) -> float:
        """End it now and return the world time of that."""
        ...

    def abandon(self) -> None:
        """Give it up at once."""
        ...

    def record(self) -> bool:
        """Run it to its end; False when given up."""
        ...


class ReplayClip:
    """A recording that hands out a real file: nothing is written, it lasts until the stop."""

    def __init__(self, kitchen: Kitchen) -> None:
        """Prepare."""
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
        """Give it up at once."""
        self._is_abandoned = True
        self.stop()

    def record(self) -> bool:
        """Wait for the end; False when given up."""
        self._stopped.wait()
        return not self._is_abandoned

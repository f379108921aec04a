"""Wait for what must happen, however busy the computer is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

LIMIT_S = 60.0
LOOK_S = 0.01


def until(condition: Callable[[], T], what: str, limit_s: float = LIMIT_S) -> T:
    """Wait until the condition holds and return what it gave; AssertionError names what never came."""
    end_s = time.monotonic() + limit_s
    while not (found := condition()):
        assert time.monotonic() < end_s, f"never came in {limit_s:.0f} s: {what}"
        time.sleep(LOOK_S)
    return found

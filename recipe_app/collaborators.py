"""What the app is built from, so that a test can give it a clock and folders of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from recipe_app.sessions import Sessions
from recipe_app.shelf import Shelf


@dataclass(frozen=True)
class Collaborators:
    """Sessions and recipes, and the capture clock (CLOCK_MONOTONIC in ns)."""

    sessions: Sessions
    shelf: Shelf
    now_ns: Callable[[], int]

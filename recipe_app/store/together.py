"""What many ask for at one moment is written together: one transaction, and one wait for the disk."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class _Asked(Generic[T, R]):
    """What one caller wants written, and what came of it."""

    def __init__(self, items: Sequence[T]) -> None:
        self.items = items
        self.results: list[R] | None = None
        self.error: Exception | None = None


class Together(Generic[T, R]):
    """Calls `write` for everything that waits; whoever gets the turn writes for the others too.

    `write` answers each item in its order, in a transaction that is over when it returns. When it fails for several
    callers at once, each is tried alone, so that nobody pays for another's fault.
    """

    def __init__(self, write: Callable[[Sequence[T]], list[R]]) -> None:
        self._write = write
        self._turn, self._lock = threading.Lock(), threading.Lock()
        self._waiting: list[_Asked[T, R]] = []

    def put(self, items: Sequence[T]) -> list[R]:
        """Write items in their order and return what came of each, or raise what the writing raised."""
        mine: _Asked[T, R] = _Asked(items)
        with self._lock:
            self._waiting.append(mine)
        with self._turn:
            if mine.results is None and mine.error is None:
                with self._lock:
                    taken, self._waiting = self._waiting, []
                self._write_all(taken)
        if mine.error is not None:
            raise mine.error
        return mine.results or []

    def _write_all(self, taken: list[_Asked[T, R]]) -> None:
        try:
            results = iter(self._write([item for asked in taken for item in asked.items]))
        except Exception as error:  # noqa: BLE001  each caller raises it, or tries alone
            if len(taken) == 1:
                taken[0].error = error
                return
            for asked in taken:
                self._write_all([asked])
            return
        for asked in taken:
            asked.results = [next(results) for _ in asked.items]

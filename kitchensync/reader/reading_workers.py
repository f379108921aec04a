"""Instants read ahead by worker processes, in order, a few at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kitchensync.reader.instant_sequence import InstantSequence

_read_of: list[InstantSequence] = []
"""In a worker process: what it reads of, opened once."""


def read_in_workers(instants: InstantSequence, workers: int, *, at_a_time: int) -> Iterator[Any]:
    """Yield what is read of instants in order; no more is read ahead than so many for each worker."""
    pool = ProcessPoolExecutor(workers, get_context("spawn"), _begin, (instants,))
    try:
        ahead: deque[Future[list[Any]]] = deque()
        for first in range(0, len(instants), at_a_time):
            ahead.append(pool.submit(_read, first, first + at_a_time))
            if len(ahead) > workers:
                yield from ahead.popleft().result()
        for one in ahead:
            yield from one.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _begin(instants: InstantSequence) -> None:
    _read_of.append(instants)


def _read(first: int, end: int) -> list[Any]:
    return _read_of[0][first:end]

"""Instants read ahead by worker processes, in order, a few at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any

_read_of: list[Any] = []
"""In a worker process: what it reads of, opened once."""


def read_in_workers(
    made: tuple[Callable[..., Any], tuple[Any, ...]], count: int, workers: int, *, at_a_time: int
) -> Iterator[Any]:
    """Yield what is read of `count` instants in order; no more is read ahead than so many for each worker.

    `made` is what makes the sequence of instants of a recording, and with what.

    Raises what reading raises, and RuntimeError where workers cannot be started or one was killed.
    """
    pool = ProcessPoolExecutor(workers, get_context("spawn"))
    # What opens them anew is sent, not they: what goes wrong there is an answer of the worker then, not its end.
    make, (recording, *words) = made
    opened = recording.__reduce__()
    try:
        ahead: deque[Future[list[Any]]] = deque()
        for first in range(0, count, at_a_time):
            ahead.append(pool.submit(_read, make, opened, words, slice(first, first + at_a_time)))
            if len(ahead) > workers:
                yield from ahead.popleft().result()
        for one in ahead:
            yield from one.result()
    except BrokenProcessPool as error:
        guard = 'a script has to call in_workers below `if __name__ == "__main__":`'
        raise RuntimeError(f"a worker process did not start or was killed; {guard}") from error
    finally:
        pool.shutdown(cancel_futures=True)


def _read(make: Callable[..., Any], opened: Any, words: list[Any], which: slice) -> list[Any]:
    if not _read_of:
        open_again, place = opened
        _read_of.append(make(open_again(*place), *words))
    read: list[Any] = _read_of[0][which]
    return read

"""Worker processes that read instants ahead, in order, a few at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any

_sequence: list[Any] = []
"""In a worker process: its sequence of instants, opened at the first task."""


def read_in_workers(
    reduced: tuple[Callable[..., Any], tuple[Any, ...]], count: int, workers: int, *, at_a_time: int
) -> Iterator[Any]:
    """Yield the values of `count` instants in order; each worker reads at most `at_a_time` instants ahead.

    `reduced` is what `__reduce__` of the sequence of instants returns.

    Raises the errors of reading, and RuntimeError if a worker cannot be started or was killed.
    """
    pool = ProcessPoolExecutor(workers, get_context("spawn"))
    # A recording that cannot be opened while a task is unpickled would break the pool. So the worker gets the
    # arguments for opening it, and an error becomes the result of its task.
    make, (recording, *options) = reduced
    open_recording = recording.__reduce__()
    try:
        ahead: deque[Future[list[Any]]] = deque()
        for first in range(0, count, at_a_time):
            numbers = slice(first, first + at_a_time)
            ahead.append(pool.submit(_read, make, open_recording, options, numbers))
            if len(ahead) > workers:
                yield from ahead.popleft().result()
        for future in ahead:
            yield from future.result()
    except BrokenProcessPool as error:
        guard = 'scripts must call in_workers below `if __name__ == "__main__":`'
        raise RuntimeError(f"a worker process did not start or was killed; {guard}") from error
    finally:
        pool.shutdown(cancel_futures=True)


def _read(make: Callable[..., Any], open_recording: Any, options: list[Any], numbers: slice) -> list[Any]:
    if not _sequence:
        function, arguments = open_recording
        _sequence.append(make(function(*arguments), *options))
    values: list[Any] = _sequence[0][numbers]
    return values

"""Worker processes with one thread each, forked from a server that has loaded all modules. Fast to import.

Loading takes the server a second or more; started early it runs on a second core, while the command itself is loading
and reading finished work.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import active_children, forkserver, get_all_start_methods, get_context, parent_process
from multiprocessing.context import BaseContext
from pathlib import Path
from threading import Thread, current_thread, main_thread
from typing import TypedDict

FEW = 4
LATER_S = 0.02  # after the callback, in which an exception would be lost again


class JobResult(TypedDict, total=False):
    """The result of a job with one recording; each job adds keys of its own."""

    recording: str
    path: str
    status: str
    exit: int
    answer: object
    reason: str
    error: str
    "A problem other than of the data: another worker may succeed."


Work = Callable[[Path], JobResult]
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def count_of(todo: int, wanted: int | None) -> int:
    """Return the number of processes for so many recordings; the default is one per core."""
    usual = (os.cpu_count() or 1) if todo >= FEW else 1  # for a few, starting processes takes longer
    return min(wanted or usual, max(todo, 1))


def start_early(todo: int, wanted: int | None, loads: str) -> None:
    """Start the server if workers are needed for so many recordings; `loads` is the module to load."""
    context = _context(loads)
    if count_of(todo, wanted) > 1 and context.get_start_method() != "spawn":
        with one_thread_each():
            forkserver.ensure_running()


def pool_of(workers: int, loads: str) -> ProcessPoolExecutor:
    """Return a pool of worker processes that end with this one; `loads` is the module to load."""
    return ProcessPoolExecutor(workers, mp_context=_context(loads), initializer=_begin)


def _context(loads: str) -> BaseContext:
    context = get_context("forkserver" if "forkserver" in get_all_start_methods() else "spawn")
    if context.get_start_method() == "forkserver":
        context.set_forkserver_preload([loads])
    return context


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Start processes with one thread inside the block, as there is one process per core."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _begin() -> None:
    """End a worker when the command is killed or gets Ctrl-C."""

    def wait() -> None:
        parent = parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    signal.signal(signal.SIGINT, _hear)
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, _hear)
        sys.unraisablehook = _interrupt_later
    Thread(target=wait, daemon=True).start()


def _hear(*_: object) -> None:
    """Interrupt the current work at the first Ctrl-C; an idle worker must survive it."""
    is_first, _state.is_over = not _state.is_over, True
    if is_first and _state.is_busy:
        raise KeyboardInterrupt


def _interrupt_later(lost: sys.UnraisableHookArgs) -> None:
    """Repeat an interrupt that Python lost because it came in a callback."""
    if lost.exc_type is KeyboardInterrupt:
        _state.is_over = False
        signal.setitimer(signal.ITIMER_REAL, LATER_S)
    else:
        sys.__unraisablehook__(lost)


@dataclass
class _State:
    """State of this worker process."""

    is_busy: bool = False
    is_over: bool = False


_state = _State()


def until_interrupted(work: Work, path: Path) -> JobResult:
    """Do the work in a worker process, ended by Ctrl-C like a command. Raises KeyboardInterrupt."""
    _state.is_busy = True
    try:
        answer = None if _state.is_over else work(path)
        if answer is None or _state.is_over:  # a library may have converted the interrupt to an error
            raise KeyboardInterrupt
        return answer
    except Exception as error:
        if _state.is_over:
            raise KeyboardInterrupt from error
        raise
    finally:
        _state.is_busy = False


@contextmanager
def ended_by_interrupt(pool: Executor) -> Iterator[Callable[[], None]]:
    """End the workers of a pool at Ctrl-C: waiting work is cancelled, current work is interrupted and awaited.

    Yields a function that raises KeyboardInterrupt after Ctrl-C. It is not raised elsewhere: inside the code of the
    pool Python may lose a lock, and the pool's thread would wait for ever.
    """
    others = {child.pid for child in active_children()}
    pressed: list[int] = []  # an Event that is set in a handler may deadlock
    try:
        with _noted(pressed):
            yield partial(_raise_if, pressed)
            _raise_if(pressed)
    except (KeyboardInterrupt, GeneratorExit):
        for child in active_children():
            if child.pid is not None and child.pid not in others:
                with suppress(ProcessLookupError):
                    os.kill(child.pid, signal.SIGINT)
        pool.shutdown(wait=True, cancel_futures=True)
        raise


@contextmanager
def _noted(pressed: list[int]) -> Iterator[None]:
    """Store Ctrl-C instead of raising it, in the main thread."""
    if current_thread() is not main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _raise_if(pressed: list[int]) -> None:
    if pressed:
        raise KeyboardInterrupt

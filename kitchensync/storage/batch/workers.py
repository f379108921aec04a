"""Worker processes with one thread each, forked from a server that has loaded everything once. Light to import.

The server loads the mathematics for a second or more; started early it does so on a second core, while the command
itself is still loading and reading what is finished.
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
from typing import Any

FEW = 4
LATER_S = 0.02
Work = Callable[[Path], dict[str, Any]]
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def count_of(todo: int, wanted: int | None) -> int:
    """How many processes of this computer work on so many recordings: a core each unless said otherwise."""
    usual = (os.cpu_count() or 1) if todo >= FEW else 1  # for a few, processes take longer to start
    return min(wanted or usual, max(todo, 1))


def start_early(todo: int, wanted: int | None, loads: str) -> None:
    """Start the server when workers will surely be needed for so many recordings; `loads` is what they work with."""
    context = _context(loads)
    if count_of(todo, wanted) > 1 and context.get_start_method() != "spawn":
        with one_thread_each():
            forkserver.ensure_running()


def pool_of(workers: int, loads: str) -> ProcessPoolExecutor:
    """A pool of worker processes that end with this one; `loads` is the module that they are forked with."""
    return ProcessPoolExecutor(workers, mp_context=_context(loads), initializer=_begin)


def _context(loads: str) -> BaseContext:
    context = get_context("forkserver" if "forkserver" in get_all_start_methods() else "spawn")
    if context.get_start_method() == "forkserver":
        context.set_forkserver_preload([loads])
    return context


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Processes that are started inside have one thread: there are as many of them as cores."""
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
    """Leave no worker behind when the command is killed, and none that goes on after Ctrl-C."""

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
    """At the first Ctrl-C end the work that is under way; one that waits for work must not die of it."""
    is_first, _state.is_over = not _state.is_over, True
    if is_first and _state.is_busy:
        raise KeyboardInterrupt


def _interrupt_later(lost: sys.UnraisableHookArgs) -> None:
    """Interrupt again in a moment where Python lost the interrupt: it came in the middle of a callback."""
    if lost.exc_type is KeyboardInterrupt:
        _state.is_over = False
        signal.setitimer(signal.ITIMER_REAL, LATER_S)
    else:
        sys.__unraisablehook__(lost)


@dataclass
class _State:
    """What this worker process is at."""

    is_busy: bool = False
    is_over: bool = False


_state = _State()


def until_interrupted(work: Work, path: Path) -> dict[str, Any]:
    """Do the work in a worker process; Ctrl-C ends it as it would end a command. Raises KeyboardInterrupt."""
    _state.is_busy = True
    try:
        answer = None if _state.is_over else work(path)
        if answer is None or _state.is_over:  # a library may have made an error of the interrupt
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
    """Let Ctrl-C end the workers of a pool: what waits is given up, what is under way is told and waited for.

    Yields what raises KeyboardInterrupt once Ctrl-C was pressed. It is not raised before: in the middle of a pool's
    own work Python may lose a lock that the pool's thread waits for, for ever.
    """
    others = {child.pid for child in active_children()}
    pressed: list[int] = []  # no Event: one that is set in a handler may wait for itself
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
    """Note Ctrl-C instead of raising it, where this is the thread that hears it."""
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

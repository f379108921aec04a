"""Worker processes with one thread each, forked from a server that has loaded everything once. Light to import.

The server loads the mathematics for a second or more; started early it does so on a second core, while the command
itself is still loading and reading what is finished.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from multiprocessing import forkserver, get_all_start_methods, get_context, parent_process
from multiprocessing.context import BaseContext
from pathlib import Path
from threading import Thread

from storage.names import recordings_in

FEW = 4
MANY = 100  # from here on a cluster is worth the seconds it takes to start
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
PRELOADED = "sync.batch.loaded"


def count_of(todo: int, wanted: int | None) -> int:
    """How many processes of this computer work on so many recordings: a core each unless said otherwise."""
    usual = (os.cpu_count() or 1) if todo >= FEW else 1  # for a few a cluster takes longer to start
    return min(wanted or usual, max(todo, 1))


def takes_cluster(todo: int) -> bool:
    """Tell whether so many recordings go to a Dask cluster, where that is installed."""
    return todo >= MANY and find_spec("distributed") is not None


def start_early(paths: Iterable[Path], wanted: int | None) -> None:
    """Start the server when workers will surely be needed: recordings that nobody has worked on yet."""
    if wanted == 1:
        return
    fresh = sum(not (one / "sync").exists() for path in paths for one in recordings_in(path))
    if count_of(fresh, wanted) > 1 and not takes_cluster(fresh) and _context().get_start_method() != "spawn":
        with one_thread_each():
            forkserver.ensure_running()


def pool_of(workers: int) -> ProcessPoolExecutor:
    """A pool of worker processes that end with this one."""
    return ProcessPoolExecutor(workers, mp_context=_context(), initializer=_end_with_parent)


def _context() -> BaseContext:
    context = get_context("forkserver" if "forkserver" in get_all_start_methods() else "spawn")
    if context.get_start_method() == "forkserver":
        context.set_forkserver_preload([PRELOADED])
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


def _end_with_parent() -> None:
    """Leave no worker behind when the command is killed."""

    def wait() -> None:
        parent = parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    Thread(target=wait, daemon=True).start()

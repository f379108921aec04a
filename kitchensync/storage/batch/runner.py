"""Do a job with many recordings: in this process, in several, or on a Dask cluster; always the same answer.

One that fails never stops the rest, and one whose process dies takes its recording with it, and only that one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kitchensync.storage.batch.cluster import Undone, on_cluster
from kitchensync.storage.batch.workers import (
    Work,
    count_of,
    ended_by_interrupt,
    one_thread_each,
    pool_of,
    until_interrupted,
)

LISTEN_S = 0.1
"""How often it is looked whether Ctrl-C was pressed."""
Answer = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """What is done with each recording."""

    work: Work
    "Can be sent to other processes, raises nothing; `error` in its answer says what but data was in the way."
    not_done: Callable[[Path, str], Answer]
    "The answer, with `error`, for a recording whose process died."
    loads: str
    "Module that worker processes are forked with."
    writes: str | None
    "Folder in a recording that it writes to, which a worker elsewhere must be free to do; None for none."


@dataclass(frozen=True)
class Workforce:
    """Who works: the workers of a Dask scheduler, or processes of this computer."""

    scheduler: str | None = None
    workers: int | None = None
    "None: a core each, for a few recordings one."
    apart: bool = False
    "Whether a single worker too is a process of its own, so that one that dies takes only its recording with it."


def run_all(job: Job, todo: list[Path], force: Workforce) -> Generator[tuple[Path, Answer], None, None]:
    """Yield each recording with its answer as it is done. Raises NoDask, NoWorkers before anything was touched.

    Ctrl-C, or closing it, gives up what waits and ends what is under way; workers of a scheduler finish that.
    """
    workers = count_of(len(todo), force.workers)
    if todo and force.scheduler is not None:
        undone: dict[Path, Undone] = {}
        for result in on_cluster(job.work, todo, force.scheduler, writes=job.writes):
            if isinstance(result, Undone):
                undone[result.path] = result
            else:
                yield result
        if undone:
            print(f"kitchensync: {len(undone)} recordings are tried on this computer", file=sys.stderr)
        for path, answer in _in_processes(job, list(undone), count_of(len(undone), None)):
            if "error" in answer and undone[path].tried:
                answer["error"] += f"; before, {undone[path].words()}"
            yield path, answer
    elif workers > 1 or (force.apart and len(todo) > 1):
        yield from _in_processes(job, todo, workers)
    else:
        for path in todo:
            yield path, job.work(path)


def _in_processes(job: Job, todo: list[Path], workers: int) -> Iterator[tuple[Path, Answer]]:
    """Those under way when a process dies are done again, each alone, to find out whose fault it was."""
    waiting = list(todo)
    with one_thread_each():
        while waiting:
            suspects: list[Path] = []
            yield from _one_pool(job, waiting, workers, suspects)
            for path in suspects:
                # those under way may be the fault of another: each alone
                died: list[Path] = []
                yield from _one_pool(job, [path], 1, died)
                for _ in died:
                    yield path, job.not_done(path, f"{path.name}: the process that worked on it died")


def _one_pool(
    job: Job, waiting: list[Path], workers: int, suspects: list[Path]
) -> Iterator[tuple[Path, Answer]]:
    """Take what waits until nothing does, or a process died: then `suspects` are those that were under way."""
    running: dict[Future[Answer], Path] = {}
    with pool_of(workers, job.loads) as pool, ended_by_interrupt(pool) as raise_if_interrupted:
        while (waiting or running) and not suspects:
            raise_if_interrupted()
            with suppress(BrokenProcessPool):  # those under way say so below
                while waiting and len(running) < workers:  # no more: what is in a pool cannot be called back
                    future = pool.submit(until_interrupted, job.work, waiting[0])
                    running[future] = waiting.pop(0)
            if not running:
                return  # a worker died with no work: begin with new ones
            for future in wait(running, LISTEN_S, FIRST_COMPLETED).done:
                path = running.pop(future)
                if isinstance(future.exception(), BrokenProcessPool):
                    suspects.append(path)
                else:
                    yield path, future.result()
        suspects += running.values()

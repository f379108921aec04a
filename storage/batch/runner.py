"""Do a job with many recordings: in this process, in several, or on a Dask cluster; always the same answer.

One that fails never stops the rest, and one whose process dies takes its recording with it, and only that one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storage.batch.cluster import Undone, on_cluster
from storage.batch.workers import (
    Work,
    count_of,
    ended_by_interrupt,
    one_thread_each,
    pool_of,
    takes_cluster,
    until_interrupted,
)

WAIT_WORKERS_S = 60.0
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
    """Who works: the workers of a Dask scheduler, waited for so long, or processes of this computer."""

    scheduler: str | None = None
    workers: int | None = None
    "None: a core each, for a few recordings one."
    wait_workers_s: float = WAIT_WORKERS_S


def run_all(job: Job, todo: list[Path], force: Workforce) -> Iterator[tuple[Path, Answer]]:
    """Yield each recording with its answer as it is done. Raises NoDask, NoWorkers before anything was touched.

    Ctrl-C, or closing the iterator, ends what is under way and gives up what waits.
    """
    workers = count_of(len(todo), force.workers)
    if todo and (force.scheduler is not None or (workers > 1 and takes_cluster(len(todo)))):
        yield from _on_cluster(job, todo, force, workers)
    elif workers == 1:
        for path in todo:
            yield path, job.work(path)
    else:
        yield from _in_processes(job, todo, workers)


def _in_processes(job: Job, todo: list[Path], workers: int) -> Iterator[tuple[Path, Answer]]:
    """One that dies takes its recording with it, and only that one."""
    left = list(todo)
    with one_thread_each():
        for group, count in ((left, workers), *(([path], 1) for path in todo)):
            pending = [path for path in group if path in left]
            if not pending:
                continue
            for path, answer in _one_pool(job, pending, count):
                if answer is None and count > 1:
                    continue  # tried again alone, to find out which one it was
                left.remove(path)
                yield path, answer or job.not_done(path, f"{path.name}: the process that worked on it died")


def _one_pool(job: Job, paths: list[Path], workers: int) -> Iterator[tuple[Path, Answer | None]]:
    with pool_of(workers, job.loads) as pool, ended_by_interrupt(pool):
        futures = {pool.submit(until_interrupted, job.work, path): path for path in paths}
        for future in as_completed(futures):
            try:
                yield futures[future], future.result()
            except BrokenProcessPool:
                yield futures[future], None


def _on_cluster(job: Job, todo: list[Path], force: Workforce, workers: int) -> Iterator[tuple[Path, Answer]]:
    """What no worker brought to an end has its last try here, in a process of its own."""
    undone: dict[Path, Undone] = {}
    results = on_cluster(
        job.work, todo, force.scheduler, workers=workers, wait_s=force.wait_workers_s, writes=job.writes
    )
    for result in results:
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

"""Do a job with many recordings in this process, in several, or on a Dask cluster, with the same result.

A failure does not stop the others, and a dying process only loses its own recording.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kitchensync.storage.batch.cluster import Undone, on_cluster
from kitchensync.storage.batch.workers import (
    JobResult,
    Work,
    count_of,
    ended_by_interrupt,
    one_thread_each,
    pool_of,
    until_interrupted,
)

LISTEN_S = 0.1
"""Interval of checks for Ctrl-C."""


@dataclass(frozen=True)
class Job:
    """The work for each recording."""

    work: Work
    "Picklable, raises nothing; `error` in its answer is a problem other than of the data."
    not_done: Callable[[Path, str], JobResult]
    "Returns the answer, with `error`, for a recording whose process died."
    loads: str
    "Module that worker processes load before forking."
    writes: str | None
    "Output folder in a recording, which a worker elsewhere must be able to write; None for none."


@dataclass(frozen=True)
class Workforce:
    """The workers of a Dask scheduler, or processes of this computer."""

    scheduler: str | None = None
    workers: int | None = None
    "None: one per core, for a few recordings one."
    apart: bool = False
    "Whether even a single worker is a separate process, so that a dying one only loses its recording."


def run_all(job: Job, todo: list[Path], force: Workforce) -> Generator[tuple[Path, JobResult], None, None]:
    """Yield each recording with its answer when it is done. Raises NoDask, NoWorkers before any work.

    Ctrl-C, or closing the generator, cancels waiting work and interrupts current work; workers of a scheduler finish
    theirs.
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


def _in_processes(job: Job, todo: list[Path], workers: int) -> Iterator[tuple[Path, JobResult]]:
    """Repeat recordings that were in work when a process died, one at a time, to find the cause."""
    waiting = list(todo)
    with one_thread_each():
        while waiting:
            suspects: list[Path] = []
            yield from _one_pool(job, waiting, workers, suspects)
            for path in suspects:
                died: list[Path] = []
                yield from _one_pool(job, [path], 1, died)
                for _ in died:
                    yield path, job.not_done(path, f"{path.name}: the process that worked on it died")


def _one_pool(
    job: Job, waiting: list[Path], workers: int, suspects: list[Path]
) -> Iterator[tuple[Path, JobResult]]:
    """Work on waiting recordings until a process dies: then `suspects` gets those that were in work."""
    running: dict[Future[JobResult], Path] = {}
    with pool_of(workers, job.loads) as pool, ended_by_interrupt(pool) as raise_if_interrupted:
        while (waiting or running) and not suspects:
            raise_if_interrupted()
            with suppress(BrokenProcessPool):  # the results below report it
                while waiting and len(running) < workers:  # submitted work cannot be taken back
                    future = pool.submit(until_interrupted, job.work, waiting[0])
                    running[future] = waiting.pop(0)
            if not running:
                return  # an idle worker died: the caller starts new ones
            for future in wait(running, LISTEN_S, FIRST_COMPLETED).done:
                path = running.pop(future)
                if isinstance(future.exception(), BrokenProcessPool):
                    suspects.append(path)
                else:
                    yield path, future.result()
        suspects += running.values()

"""Synchronize many recordings: in this process, in several, or on a Dask cluster; always the same answer.

One that fails never stops the rest. What is finished is kept in `sync/state.json` of each recording, written last, so
that a run that was killed goes on where it stopped.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from sensors.refusal import words_of
from storage.errors import StorageError
from storage.names import recordings_in
from sync.by_life import settled_by_life
from sync.errors import NoDask, SyncError
from sync.state import fingerprint, finished, forget, remember
from sync.workers import count_of, one_thread_each, pool_of, takes_cluster

SCHEMA = "sync/1"
Answer = dict[str, Any]
Progress = Callable[[int, int, Answer], None]


def synchronize_all(
    paths: Iterable[Path],
    *,
    master: str | None = None,
    scheduler: str | None = None,
    workers: int | None = None,
    again: bool = False,
    progress: Progress | None = None,
) -> Answer:
    """Synchronize the recordings that `paths` stand for; return the object `sync/1` in order of `paths` and name.

    `scheduler` is the address of a Dask scheduler; without it `workers` processes of this computer work (default: one
    a core). Recordings found in a folder are skipped when finished before, unless `again`. Raises NoDask.
    """
    found: list[Path] = []
    todo: list[Path] = []
    answers: dict[Path, Answer] = {}
    for path in paths:
        inside = recordings_in(path)
        found += inside
        for recording in inside:
            known = None if again or inside == [path] else finished(recording, master)
            if known is not None:
                answers[recording] = known
            elif recording not in todo:
                todo.append(recording)
    for done, (recording, answer) in enumerate(_run(todo, master, scheduler, workers), start=1):
        if "path" in answer:
            answer["path"] = str(recording)  # a worker elsewhere says it in another way
        answers[recording] = answer
        if progress is not None:
            progress(done + len(found) - len(todo), len(found), answer)
    return {"schema": SCHEMA, "recordings": [answers[recording] for recording in found]}


def _run(
    todo: list[Path], master: str | None, scheduler: str | None, workers: int | None
) -> Iterator[tuple[Path, Answer]]:
    workers = count_of(len(todo), workers)
    if scheduler is not None:
        yield from _on_dask(todo, master, scheduler, workers)
    elif workers == 1:
        for path in todo:
            answer = one(path, master)
            _tell(answer)
            yield path, answer
    elif takes_cluster(len(todo)):
        yield from _on_dask(todo, master, None, workers)
    else:
        yield from _in_processes(todo, master, workers)


def one(path: Path, master: str | None) -> Answer:
    """Synchronize one recording, whatever is wrong with it; remember the answer when it is whole."""
    from sync.job import (
        synchronize,  # here: only who works needs the mathematics, and it takes a second to load
    )

    try:
        if (answer := settled_by_life(path)) is not None:
            return answer
        forget(path)
        inputs = fingerprint(path, master)  # before: a file that comes meanwhile is not in the answer
        answer = synchronize(path, master=master)
        remember(path, inputs, answer)
    except (SyncError, StorageError, OSError) as error:
        return failed(path, words_of(error))
    except Exception as error:  # noqa: BLE001  a fault in one recording must not stop four hundred
        return failed(path, f"unforeseen {type(error).__name__}: {' '.join(str(error).split())}")
    return answer


def failed(path: Path, reason: str) -> Answer:
    """Say why a recording could not be synchronized at all; the place of its folder is left out."""
    reason = reason.replace(f"{path}/", "").replace(str(path), path.name)
    return {"recording": path.name, "status": "not_aligned", "reasons": [reason], "pairs": [], "failed": True}


def _tell(answer: Answer) -> None:
    if answer.get("failed"):
        print(f"kitchensync: {answer['reasons'][0]}", file=sys.stderr)


def _in_processes(todo: list[Path], master: str | None, workers: int) -> Iterator[tuple[Path, Answer]]:
    """One that dies takes its recording with it, and only that one."""
    left = list(todo)
    with one_thread_each():
        for group, count in ((left, workers), *(([path], 1) for path in todo)):
            pending = [path for path in group if path in left]
            if not pending:
                continue
            for path, answer in _one_pool(pending, master, count):
                if answer is None and count > 1:
                    continue  # tried again alone, to find out which one it was
                left.remove(path)
                answer = answer or failed(path, f"{path.name}: the process that worked on it died")
                _tell(answer)
                yield path, answer


def _one_pool(paths: list[Path], master: str | None, workers: int) -> Iterator[tuple[Path, Answer | None]]:
    with pool_of(workers) as pool:
        jobs = {pool.submit(one, path, master): path for path in paths}
        for job in as_completed(jobs):
            try:
                yield jobs[job], job.result()
            except BrokenProcessPool:
                yield jobs[job], None


def _on_dask(
    todo: list[Path], master: str | None, scheduler: str | None, workers: int
) -> Iterator[tuple[Path, Answer]]:
    """A cluster of this computer, or the one at `scheduler`; its workers must see the same folders."""
    try:
        from dask import config
        from distributed import Client, KilledWorker, LocalCluster
        from distributed import as_completed as done_first
    except ImportError as error:
        raise NoDask from error
    quiet = {"distributed.worker.daemon": True, "distributed.logging.distributed": "error"}
    with config.set(quiet):
        cluster: Any = scheduler
        if scheduler is None:
            cluster = LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                dashboard_address="127.0.0.1:0",  # a free port: None would take 8787 on every interface
                memory_limit=0,
                silence_logs=50,
            )
        try:
            with Client(cluster, timeout="15s") as client:
                jobs = [client.submit(one, path.absolute(), master, pure=False, retries=0) for path in todo]
                names = {job.key: path for job, path in zip(jobs, todo, strict=True)}
                for job in done_first(jobs):
                    try:
                        answer = job.result()
                    except KilledWorker:
                        answer = failed(
                            names[job.key], f"{names[job.key].name}: the process that worked on it died"
                        )
                    _tell(answer)
                    yield names[job.key], answer
        except (OSError, TimeoutError) as error:
            raise NoDask(scheduler or "a local cluster", error) from error
        finally:
            if scheduler is None:
                cluster.close()

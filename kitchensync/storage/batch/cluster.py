"""Run work on the workers of a Dask scheduler: only on suitable workers, with retries on other workers.

This module assigns recordings to workers itself instead of the scheduler: it knows which worker has which recording,
and a worker that dies costs its recordings one try.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from kitchensync.storage.batch.workers import JobResult, Work
from kitchensync.storage.errors import NoDask, NoWorkers
from kitchensync.storage.names import MANIFEST

WAIT_S = 120.0
"""Wait for the first worker, seconds: a cluster may have to start the nodes."""
SAME = ("kitchensync", "numpy", "scipy", "h5py")
"""Packages that must have the same version, because results may depend on it."""


class SeenRecording(TypedDict):
    """A recording as seen by a worker: hash of its manifest, or why it cannot be read, and write permission."""

    manifest: str | None
    why: NotRequired[str]
    writes: bool


class Fitness(TypedDict):
    """Versions and visible recordings of a process; the keys are the same in all versions of the software."""

    versions: dict[str, str]
    recordings: dict[str, SeenRecording]


def facts(recordings: list[str], writes: str | None) -> Fitness:
    """Return the versions of this process, and for each recording the hash of its manifest and write permission.

    `writes` is the folder in a recording that is written to: a name, "" for the recording itself, None for none.
    """
    views: dict[str, SeenRecording] = {}
    for path in recordings:
        try:
            digest = hashlib.sha256(Path(path, MANIFEST).read_bytes()).hexdigest()
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            views[path] = {"manifest": None, "why": why, "writes": False}
            continue
        place = Path(path, writes) if writes and Path(path, writes).is_dir() else Path(path)
        views[path] = {"manifest": digest, "writes": writes is None or os.access(place, os.W_OK | os.X_OK)}
    return {"versions": versions(), "recordings": views}


def versions() -> dict[str, str]:
    """Return the versions that results depend on."""
    result = {"python": ".".join(map(str, sys.version_info[:2]))}
    for name in SAME:
        try:
            result[name] = version(name)
        except PackageNotFoundError:
            result[name] = "absent"
    return result


def unfit(there: Fitness, here: Fitness) -> str:
    """Return why a worker with the facts `there` is not suitable for this process, `here`; empty if it is."""
    reasons = [
        f"{name} {there['versions'].get(name)} instead of {expected}"
        for name, expected in here["versions"].items()
        if there["versions"].get(name) != expected
    ]
    for path, view in there["recordings"].items():
        if view["manifest"] is None:
            reasons.append(f"does not see {path} ({view['why']})")
        elif view["manifest"] != here["recordings"][path]["manifest"]:
            reasons.append(f"sees another recording at {path}")
        elif not view["writes"]:
            reasons.append(f"may not write to {path}")
    return ", ".join(reasons)


CONNECT_S = 10
ANSWER_S = 30.0
"""Time limit for the facts of a worker, seconds: it imports the numerical libraries first."""
TICK_S = 0.5
TRIES = 2
"""Tries on different workers, before the last try on the command's own computer."""


@dataclass
class Undone:
    """A recording that the cluster did not finish: worker -> reason."""

    path: Path
    tried: dict[str, str] = field(default_factory=dict)

    def words(self) -> str:
        """Return the tries as text."""
        return "; ".join(f"{worker}: {why}" for worker, why in self.tried.items())


def on_cluster(
    work: Work, todo: list[Path], scheduler: str, *, writes: str | None
) -> Iterator[tuple[Path, JobResult] | Undone]:
    """Run `work` for recordings on the workers of a scheduler; yield answers and unfinished recordings.

    `writes` is the folder in a recording that `work` writes to (see `facts`). Waits `WAIT_S` for a worker.

    Raises NoDask without Dask or scheduler, NoWorkers without a suitable worker.
    """
    try:
        from dask import config
        from distributed import Client
        from distributed.versions import VersionMismatchWarning
    except ImportError as error:
        raise NoDask from error
    quiet = {"distributed.worker.daemon": True, "distributed.logging.distributed": "critical"}
    with config.set(quiet):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", VersionMismatchWarning)  # `unfit` reports it
                client = Client(scheduler, timeout=f"{CONNECT_S}s")
        except (OSError, TimeoutError, ValueError) as error:
            raise NoDask(scheduler, " ".join(str(error).split())) from error
        with client:
            first_of_folder: dict[Path, str] = {}
            for path in todo:
                first_of_folder.setdefault(path.absolute().parent, str(path.absolute()))
            crew = Crew(client, scheduler, [*first_of_folder.values()], writes)
            crew.wait()
            waiting = [Undone(path) for path in todo]
            running: dict[Any, tuple[Undone, str]] = {}
            try:
                yield from _until_done(crew, work, waiting, running)
            except (KeyboardInterrupt, GeneratorExit):
                if unfinished := [f"{job.path.name} ({worker})" for job, worker in running.values()]:
                    _tell(f"workers may go on with what they had begun: {', '.join(unfinished)}")
                raise


class Crew:
    """The workers of a scheduler; the facts of each are requested once."""

    def __init__(self, client: Any, name: str, samples: list[str], writes: str | None) -> None:
        self.client, self.name, self._writes = client, name, writes
        self._here = facts(samples, writes)
        self._faults: dict[str, str] = {}

    def present(self) -> dict[str, int]:
        """Return the connected suitable workers, and their numbers of threads."""
        if self.client.status != "running":
            return {}
        there = {
            address: int(info["nthreads"])
            for address, info in self.client.scheduler_info()["workers"].items()
        }
        if fresh := [address for address in there if address not in self._faults]:
            from distributed import wait

            futures = {
                address: self.client.submit(
                    facts,
                    list(self._here["recordings"]),
                    self._writes,
                    workers=[address],
                    pure=False,
                    priority=10,
                )
                for address in fresh
            }
            with suppress(TimeoutError):
                wait(list(futures.values()), timeout=ANSWER_S)
            for address, future in futures.items():
                if future.status == "finished":
                    self._faults[address] = unfit(future.result(), self._here)
                elif future.status == "error":
                    why = " ".join(str(future.exception()).split())
                    self._faults[address] = f"cannot run this software ({why})"
                else:
                    self._faults[address] = f"did not answer within {ANSWER_S:g} s"
                future.cancel()
                if self._faults[address]:
                    _tell(f"worker {address} is not used: {self._faults[address]}")
        return {address: count for address, count in there.items() if not self._faults[address]}

    def wait(self) -> None:
        """Wait for a suitable worker. Raises NoWorkers if all are unsuitable, or none came."""
        end = time.monotonic() + WAIT_S
        has_told = False
        while not self.present():
            if self._faults:
                raise NoWorkers(self.name, "; ".join(f"{who}: {why}" for who, why in self._faults.items()))
            if time.monotonic() >= end:
                raise NoWorkers(self.name, f"no worker came within {WAIT_S:g} s")
            if not has_told:
                _tell(f"no workers at {self.name} yet; waiting up to {WAIT_S:g} s")
            has_told = True
            time.sleep(TICK_S)


def _until_done(
    crew: Crew, work: Work, waiting: list[Undone], running: dict[Any, tuple[Undone, str]]
) -> Iterator[tuple[Path, JobResult] | Undone]:
    """Keep every suitable worker busy; `running` maps futures to recording and worker."""
    last_seen = time.monotonic()
    while waiting or running:
        present = crew.present()
        last_seen = time.monotonic() if present else last_seen
        for future in [
            future for future, (_, worker) in running.items() if future.done() or worker not in present
        ]:
            job, worker = running.pop(future)
            if (answer := _answer(future, job, worker)) is not None:
                yield job.path, answer
            else:
                waiting.append(job)
        is_over = crew.client.status not in ("running", "connecting") or time.monotonic() > last_seen + WAIT_S
        for job in list(waiting):
            if is_over or len(job.tried) >= TRIES or (job.tried and present.keys() <= job.tried.keys()):
                waiting.remove(job)
                yield job
            elif (free := _free_worker(job, present, running)) is not None:
                waiting.remove(job)
                future = crew.client.submit(work, job.path.absolute(), workers=[free], pure=False, retries=0)
                running[future] = (job, free)
        _pause(list(running))


def _answer(future: Any, job: Undone, worker: str) -> JobResult | None:
    """Return the answer of a worker; None if it failed, with the reason in `job.tried`."""
    if future.status == "finished":
        answer: JobResult = future.result()
        if "error" not in answer:
            return answer
        job.tried[worker] = answer["error"]
    elif future.status == "error":
        job.tried[worker] = " ".join(str(future.exception()).split())
    else:
        job.tried[worker] = "the worker was lost"
        future.cancel()
    return None


def _free_worker(job: Undone, present: dict[str, int], running: dict[Any, tuple[Undone, str]]) -> str | None:
    """Return the worker with most free threads that has not tried this recording."""
    busy = [worker for _, worker in running.values()]
    room = {
        worker: count - busy.count(worker) for worker, count in present.items() if worker not in job.tried
    }
    best = max(room, key=lambda worker: room[worker], default=None)
    return best if best is not None and room[best] > 0 else None


def _pause(futures: list[Any]) -> None:
    """Wait until a future is done, at most `TICK_S`."""
    from distributed import wait

    if not futures:
        time.sleep(TICK_S)
        return
    with suppress(TimeoutError):
        wait(futures, timeout=TICK_S, return_when="FIRST_COMPLETED")


def _tell(text: str) -> None:
    print(f"kitchensync: {text}", file=sys.stderr, flush=True)

"""Work on the workers of a Dask scheduler: only fit ones, each recording given out by name, tried again elsewhere.

Recordings are handed out here rather than by the scheduler: so it is known who worked on what, and a worker that dies
costs its recordings one try.
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

from kitchensync.storage.batch.workers import Work
from kitchensync.storage.errors import NoDask, NoWorkers
from kitchensync.storage.names import MANIFEST

WAIT_S = 120.0
"""How long to wait for a first worker: a cluster may have to start the nodes."""
SAME = ("kitchensync", "numpy", "scipy", "h5py")
"""Packages of which another version may give another answer."""


class SeenRecording(TypedDict):
    """A recording as a worker sees it: the hash of its manifest, else why there is none; and if it may write."""

    manifest: str | None
    why: NotRequired[str]
    writes: bool


class Fitness(TypedDict):
    """What a process has and sees; workers of other versions say it in the same words."""

    versions: dict[str, str]
    recordings: dict[str, SeenRecording]


def facts(recordings: list[str], writes: str | None) -> Fitness:
    """Report what this process has and sees: versions; by recording its manifest's hash, and if it may write.

    `writes` is the folder in a recording that is written to: a name, "" for the recording's own, None for none.
    """
    seen: dict[str, SeenRecording] = {}
    for path in recordings:
        try:
            digest = hashlib.sha256(Path(path, MANIFEST).read_bytes()).hexdigest()
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            seen[path] = {"manifest": None, "why": why, "writes": False}
            continue
        place = Path(path, writes) if writes and Path(path, writes).is_dir() else Path(path)
        seen[path] = {"manifest": digest, "writes": writes is None or os.access(place, os.W_OK | os.X_OK)}
    return {"versions": versions(), "recordings": seen}


def versions() -> dict[str, str]:
    """Return the versions that answers depend on."""
    found = {"python": ".".join(map(str, sys.version_info[:2]))}
    for name in SAME:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "absent"
    return found


def unfit(there: Fitness, here: Fitness) -> str:
    """Return why a worker with the facts `there` may not work for one with the facts `here`; empty where it may."""
    said = [
        f"{name} {there['versions'].get(name)} instead of {wanted}"
        for name, wanted in here["versions"].items()
        if there["versions"].get(name) != wanted
    ]
    for path, seen in there["recordings"].items():
        if seen["manifest"] is None:
            said.append(f"does not see {path} ({seen['why']})")
        elif seen["manifest"] != here["recordings"][path]["manifest"]:
            said.append(f"sees another recording at {path}")
        elif not seen["writes"]:
            said.append(f"may not write to {path}")
    return ", ".join(said)


CONNECT_S = 10
ANSWER_S = 30.0
"""How long a worker may take to say what it has: the mathematics loads meanwhile."""
TICK_S = 0.5
TRIES = 2
"""On different workers, before the command's own computer has a last try."""

Answer = dict[str, Any]


@dataclass
class Undone:
    """A recording that the cluster did not bring to an end: by worker, why not."""

    path: Path
    tried: dict[str, str] = field(default_factory=dict)

    def words(self) -> str:
        """Report who tried and what happened."""
        return "; ".join(f"{worker}: {why}" for worker, why in self.tried.items())


def on_cluster(
    work: Work, todo: list[Path], scheduler: str, *, writes: str | None
) -> Iterator[tuple[Path, Answer] | Undone]:
    """Give recordings to the workers of a scheduler; yield answers and what is undone.

    `writes` is the folder in a recording that `work` writes to (see `facts`). Waits `WAIT_S` for a worker.

    Raises NoDask without Dask or scheduler, NoWorkers where none is fit.
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
                warnings.simplefilter(
                    "ignore", VersionMismatchWarning
                )  # said by `unfit`, in one line a worker
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
                if left := [f"{job.path.name} ({worker})" for job, worker in running.values()]:
                    _tell(f"workers may go on with what they had begun: {', '.join(left)}")
                raise


class Crew:
    """The workers of a scheduler, each asked once whether it is fit."""

    def __init__(self, client: Any, name: str, samples: list[str], writes: str | None) -> None:
        self.client, self.name, self._writes = client, name, writes
        self._here = facts(samples, writes)
        self._known: dict[str, str] = {}

    def present(self) -> dict[str, int]:
        """Fit workers that are connected now, and how many recordings each takes at once."""
        if self.client.status != "running":
            return {}
        there = {
            address: int(one["nthreads"]) for address, one in self.client.scheduler_info()["workers"].items()
        }
        if fresh := [address for address in there if address not in self._known]:
            from distributed import wait

            asked = {
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
                wait(list(asked.values()), timeout=ANSWER_S)
            for address, future in asked.items():
                if future.status == "finished":
                    self._known[address] = unfit(future.result(), self._here)
                elif future.status == "error":
                    why = " ".join(str(future.exception()).split())
                    self._known[address] = f"cannot run this software ({why})"
                else:
                    self._known[address] = f"did not answer within {ANSWER_S:g} s"
                future.cancel()
                if self._known[address]:
                    _tell(f"worker {address} is not used: {self._known[address]}")
        return {address: count for address, count in there.items() if not self._known[address]}

    def wait(self) -> None:
        """Return when there is a fit worker. Raises NoWorkers when all are unfit, or none came."""
        end = time.monotonic() + WAIT_S
        told = False
        while not self.present():
            if self._known:
                raise NoWorkers(self.name, "; ".join(f"{who}: {why}" for who, why in self._known.items()))
            if time.monotonic() >= end:
                raise NoWorkers(self.name, f"no worker came within {WAIT_S:g} s")
            if not told:
                _tell(f"no workers at {self.name} yet; waiting up to {WAIT_S:g} s")
            told = True
            time.sleep(TICK_S)


def _until_done(
    crew: Crew, work: Work, waiting: list[Undone], running: dict[Any, tuple[Undone, str]]
) -> Iterator[tuple[Path, Answer] | Undone]:
    """Keep every fit worker busy; `running` holds what each is at."""
    last_seen = time.monotonic()
    while waiting or running:
        present = crew.present()
        last_seen = time.monotonic() if present else last_seen
        for future in [one for one, (_, worker) in running.items() if one.done() or worker not in present]:
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


def _answer(future: Any, job: Undone, worker: str) -> Answer | None:
    """Return what a worker found; None, and why, where it did not come to an end."""
    if future.status == "finished":
        answer: Answer = future.result()
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
    """The worker with the most room that has not tried this recording."""
    busy = [worker for _, worker in running.values()]
    room = {one: count - busy.count(one) for one, count in present.items() if one not in job.tried}
    best = max(room, key=lambda one: room[one], default=None)
    return best if best is not None and room[best] > 0 else None


def _pause(futures: list[Any]) -> None:
    """Wait until one is done, or for a moment."""
    from distributed import wait

    if not futures:
        time.sleep(TICK_S)
        return
    with suppress(TimeoutError):
        wait(futures, timeout=TICK_S, return_when="FIRST_COMPLETED")


def _tell(text: str) -> None:
    print(f"kitchensync: {text}", file=sys.stderr, flush=True)

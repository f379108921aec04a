"""Takes up a recording whose recorder was killed: drains what its queue still holds, seals it, closes the books."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from capture.books import close_books, is_open
from capture.errors import StillEnding
from capture.heartbeat import last_beat
from capture.hold import held
from capture.plan import GROUP, RUNNING, Plan, is_running, load_plan, runtime_folder
from capture.queue_server import QueueServer
from capture.supervisor import Supervisor
from storage.names import LOGS, MANIFEST, PART_SUFFIX, WORK

ORPHANS_END_S = 15.0
"""Processes of a killed supervisor end by themselves within some seconds."""


def orphans(data: Path) -> Iterator[tuple[Path, Plan]]:
    """Yield work folder and plan of every recording below `data` that nobody is making any more."""
    for file in sorted((data / WORK).glob("*/plan.json")):
        plan = load_plan(file)
        if not is_running(runtime_folder(Path(plan.path))):
            yield file.parent, plan


def recover_all(data: Path) -> list[str]:
    """Recover every orphan below `data`; return their ids. Raises StillEnding."""
    return [recover(work, plan) for work, plan in list(orphans(data))]


def recover(work: Path, plan: Plan) -> str:
    """Recover one recording and remove its work folder; return its id. Raises StillEnding.

    A queue on a server of yours is drained there. Running it again after a crash in between is harmless.
    """
    runtime = runtime_folder(Path(plan.path))
    try:
        with held(work / GROUP, ORPHANS_END_S) as hold:
            shutil.rmtree(runtime, ignore_errors=True)
            runtime.mkdir(mode=0o700, parents=True)
            with held(runtime / RUNNING):
                _take_up(work, replace(plan, work=str(work), runtime=str(runtime)), hold)
    except BlockingIOError as error:
        raise StillEnding(plan.recording, ORPHANS_END_S) from error
    finally:
        shutil.rmtree(runtime, ignore_errors=True)
    return plan.recording


def _take_up(work: Path, plan: Plan, hold: int) -> None:
    recording = Path(plan.path)
    if is_open(recording):
        _drain(work, replace(plan, supervisor_pid=os.getpid()), hold)
    elif recording.is_dir() and not (recording / MANIFEST).exists():
        (recording / (MANIFEST + PART_SUFFIX)).unlink(missing_ok=True)
        _remove_empty(recording)  # killed before it began
    shutil.rmtree(work)
    with contextlib.suppress(OSError):
        work.parent.rmdir()


def _remove_empty(folder: Path) -> None:
    """Remove folders that hold no file; whatever somebody put there stays."""
    with contextlib.suppress(OSError):
        for path in [*sorted(folder.rglob("*"), reverse=True), folder]:
            path.rmdir()


def _drain(work: Path, plan: Plan, hold: int) -> None:
    alive = last_beat(work)
    own = plan.queue_url.startswith("unix://") and (work / "appendonlydir").exists()
    server = QueueServer(work, Path(plan.runtime) / "queue", hold=hold) if own else None
    try:
        if server is not None:
            server.start()
            plan = replace(plan, queue_url=server.url)
        plan.save(work / "plan.json")
        (Path(plan.path) / LOGS).mkdir(exist_ok=True)
        supervisor = Supervisor(plan, server, [], hold=hold)
        try:
            supervisor.drain()
        finally:
            supervisor.close()
        close_books(plan, supervisor.outcome, own_queue=own, ended=alive)
    finally:
        if server is not None:
            server.stop()

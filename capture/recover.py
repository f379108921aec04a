"""Takes up a recording whose recorder was killed: drains what its queue still holds, seals it, closes the books."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from capture import queue
from capture.books import clear_queue, close_books
from capture.errors import StillEnding
from capture.heartbeat import last_beat
from capture.hold import held
from capture.plan import GROUP, QUEUE, RUNNING, Plan, is_running, load_plan, own_queue_url, runtime_folder
from capture.queue_server import QueueServer
from capture.supervisor import Supervisor
from storage.manifest import read_manifest
from storage.names import LOGS, MANIFEST, PART_SUFFIX, WORK

ORPHANS_END_S = 15.0
"""Processes of a killed supervisor end by themselves within some seconds."""


def orphans(data: Path) -> Iterator[tuple[Path, Plan]]:
    """Yield work folder and plan of every recording below `data` that nobody is making any more.

    `data` may lie elsewhere than when it was recorded: a disk that is mounted under another name.
    """
    data = data.resolve()  # the queue server runs in a folder of its own
    for file in sorted((data / WORK).glob("*/plan.json")):
        try:
            plan = load_plan(file)
        except FileNotFoundError:
            continue  # its recorder has ended just now
        plan = replace(plan, path=str(data / plan.recording))
        if not is_running(runtime_folder(Path(plan.path))):
            yield file.parent, plan


def recover_all(data: Path) -> list[str]:
    """Recover every orphan below `data`; return their ids. Raises StillEnding."""
    return [recover(work, plan) for work, plan in list(orphans(data))]


def recover(work: Path, plan: Plan) -> str:
    """Recover one recording and remove its work folder; return its id. Raises StillEnding.

    A queue on a server of yours is drained there. Running it again after a crash in between is harmless.
    """
    is_own = plan.queue_url == own_queue_url(plan)
    try:
        with held(work / GROUP, ORPHANS_END_S) as hold:
            if (work / "plan.json").exists():  # else somebody else was at it while we waited
                _take_up(work, plan, hold, is_own=is_own)
    except BlockingIOError as error:
        raise StillEnding(plan.recording, ORPHANS_END_S) from error
    except FileNotFoundError:
        if work.exists():
            raise
    return plan.recording


def _take_up(work: Path, plan: Plan, hold: int, *, is_own: bool) -> None:
    runtime = runtime_folder(Path(plan.path))
    shutil.rmtree(runtime, ignore_errors=True)
    runtime.mkdir(mode=0o700, parents=True)
    try:
        with held(runtime / RUNNING):
            plan = replace(plan, work=str(work), runtime=str(runtime), supervisor_pid=os.getpid())
            _settle(work, plan, hold, is_own=is_own)
    finally:
        shutil.rmtree(runtime, ignore_errors=True)


def _settle(work: Path, plan: Plan, hold: int, *, is_own: bool) -> None:
    """Bring the recording to its end, then remove the work folder; not where its manifest cannot be read."""
    recording = Path(plan.path)
    if (recording / MANIFEST).exists():
        if read_manifest(recording).get("state") == "recording":
            _drain(work, plan, hold, is_own=is_own)
        elif not is_own:
            clear_queue(plan)
    elif recording.is_dir():
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


def _drain(work: Path, plan: Plan, hold: int, *, is_own: bool) -> None:
    alive = last_beat(work)
    server = QueueServer(work, Path(plan.runtime) / QUEUE, hold=hold) if is_own else None
    try:
        if server is not None:
            server.start()
            plan = replace(plan, queue_url=server.url)
        else:
            with queue.connect(plan.queue_url) as client:
                queue.wait_until_ready(client, plan.queue_url, limit_s=5)
        plan.save(work / "plan.json")
        (Path(plan.path) / LOGS).mkdir(exist_ok=True)
        supervisor = Supervisor(plan, server, [], hold=hold)
        try:
            supervisor.drain()
        finally:
            supervisor.close()
        close_books(plan, supervisor.outcome, own_queue=is_own, ended=alive)
    finally:
        if server is not None:
            server.stop()

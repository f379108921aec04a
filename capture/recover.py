"""Takes up a recording whose recorder was killed: drains what its queue still holds, seals it, closes the books."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from capture.books import close_books, is_open
from capture.plan import Plan, is_running, load_plan, runtime_folder
from capture.queue_server import QueueServer
from capture.supervisor import Supervisor
from storage.names import WORK


def orphans(data: Path) -> Iterator[tuple[Path, Plan]]:
    """Yield work folder and plan of every recording below `data` that nobody is making any more."""
    for file in sorted((data / WORK).glob("*/plan.json")):
        plan = load_plan(file)
        if not is_running(runtime_folder(Path(plan.path))):
            yield file.parent, plan


def recover_all(data: Path) -> list[str]:
    """Recover every orphan below `data`; return their ids."""
    return [recover(work, plan) for work, plan in list(orphans(data))]


def recover(work: Path, plan: Plan) -> str:
    """Recover one recording and remove its work folder; return its id.

    A queue on a server of yours is drained there. Running it again after a crash in between is harmless.
    """
    runtime = runtime_folder(Path(plan.path))
    shutil.rmtree(runtime, ignore_errors=True)
    runtime.mkdir(mode=0o700, parents=True)
    (runtime / "pid").write_text(str(os.getpid()))
    try:
        if is_open(Path(plan.path)):
            _drain(work, replace(plan, work=str(work), runtime=str(runtime), supervisor_pid=os.getpid()))
        shutil.rmtree(work)
        with contextlib.suppress(OSError):
            work.parent.rmdir()
    finally:
        shutil.rmtree(runtime, ignore_errors=True)
    return plan.recording


def _drain(work: Path, plan: Plan) -> None:
    own = plan.queue_url.startswith("unix://") and (work / "appendonlydir").exists()
    server = QueueServer(work, Path(plan.runtime) / "queue") if own else None
    try:
        if server is not None:
            server.start()
            plan = replace(plan, queue_url=server.url)
        plan.save(work / "plan.json")
        supervisor = Supervisor(plan, server, [])
        try:
            supervisor.drain()
        finally:
            supervisor.close()
        close_books(plan, supervisor.outcome, own_queue=own)
    finally:
        if server is not None:
            server.stop()

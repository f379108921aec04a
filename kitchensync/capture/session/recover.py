"""Finish a recording whose recorder was killed, or could not store everything: drain its queue and close it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from kitchensync.capture.errors import PlanOfOthers, RecordingGone, StillEnding, StillWaiting
from kitchensync.capture.lock import held
from kitchensync.capture.plan import (
    GROUP,
    QUEUE,
    RUNNING,
    Plan,
    is_ours,
    is_running,
    load_plan,
    own_queue_url,
    runtime_folder,
)
from kitchensync.capture.process.heartbeat import last_beat
from kitchensync.capture.queue.queue_connection import RUNNING_READY_S, connect, reached, wait_until_ready
from kitchensync.capture.queue.server import QueueServer
from kitchensync.capture.session.closing import ENDED, clear_queue, close_recording, finish_recording
from kitchensync.capture.session.supervisor import Supervisor
from kitchensync.shell.host_clock import UtcAnchor
from kitchensync.storage.errors import ManifestLost, NotARecording
from kitchensync.storage.manifest import Manifest, read_manifest
from kitchensync.storage.names import LOGS, MANIFEST, PART_SUFFIX, WORK, holds_recorded_files, stream_key

ORPHANS_END_S = 15.0
"""Processes of a killed supervisor end by themselves within some seconds."""


@dataclass
class Recovered:
    """What became of the recordings that nobody is making any more."""

    paths: list[Path] = field(default_factory=list)
    """Those that are whole again."""
    left: list[str] = field(default_factory=list)
    """One line for each of the others: why not, where its packets wait, and what to do."""


def recover_all(data: Path, *, is_mine: bool = False) -> Recovered:
    """Recover every orphan below `data`; one that cannot be recovered keeps none of the others waiting.

    A plan names servers, and the queue's file is run by ours: those from elsewhere are taken up where `is_mine` says
    that they are the user's own.
    """
    done = Recovered()
    for work in work_folders(data):
        try:
            plan = orphan_in(work)
            if plan is not None:
                if not (is_mine or is_ours(work / "plan.json")):
                    raise PlanOfOthers(work)
                recover(work, plan)
                done.paths.append(Path(plan.path))
        except Exception as error:  # noqa: BLE001 (whatever it is: it stays where it is, and the next one is looked at)
            why = " ".join(str(error).split()) or repr(error)
            done.left.append(f"{work.name} is not recovered yet: {why}")
    return done


def recover(work: Path, plan: Plan) -> None:
    """Recover one recording and remove its work folder.

    A queue on a server of yours is drained there. Running it again after a crash in between is harmless. Raises
    StillEnding, RecordingGone, StillWaiting, QueueUnavailable, NotARecording; then the work folder stays.
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


def _take_up(work: Path, plan: Plan, hold: int, *, is_own: bool) -> None:
    runtime = runtime_folder(Path(plan.path))
    shutil.rmtree(runtime, ignore_errors=True)
    runtime.mkdir(mode=0o700, parents=True)
    plan = replace(plan, work=str(work), runtime=str(runtime), supervisor_pid=os.getpid())
    server = QueueServer(work, runtime / QUEUE, hold=hold) if is_own else None
    if server is not None:
        plan = replace(plan, queue_url=server.url)
    try:
        with held(runtime / RUNNING):
            _settle(work, plan, hold, server)
    finally:
        shutil.rmtree(runtime, ignore_errors=True)


def _settle(work: Path, plan: Plan, hold: int, server: QueueServer | None) -> None:
    """Bring the recording to its end, then remove the work folder; not where its manifest cannot be read."""
    recording = Path(plan.path)
    if (recording / MANIFEST).exists():
        manifest = read_manifest(recording)
        if manifest.get("state") == "recording":
            _drain(work, plan, hold, server, manifest)
        elif server is None:
            clear_queue(plan)
    elif holds_recorded_files(recording) or holds_packets(plan, server):
        if recording.is_dir():
            raise ManifestLost(recording, f"{MANIFEST} is missing")
        raise RecordingGone(recording, work)
    elif recording.is_dir():
        (recording / (MANIFEST + PART_SUFFIX)).unlink(missing_ok=True)
        _remove_empty(recording)  # killed before it began
    shutil.rmtree(work)
    with contextlib.suppress(OSError):
        work.parent.rmdir()


def holds_packets(plan: Plan, server: QueueServer | None) -> bool:
    """Return whether the queue holds packets of a recording; `server` is ours, or None. Raises QueueUnavailable."""
    with _serving(plan, server), reached(plan.queue_url) as client:
        return any(client.xlen(stream_key(plan.uuid, stream)) for stream in plan.stored_streams())


@contextlib.contextmanager
def _serving(plan: Plan, server: QueueServer | None) -> Iterator[None]:
    """Have the queue for a block: our own is started from its files, a server of yours has to be there."""
    try:
        if server is not None:
            server.start()
        else:
            with connect(plan.queue_url) as client:
                wait_until_ready(client, plan.queue_url, limit_s=RUNNING_READY_S)
        yield
    finally:
        if server is not None:
            server.stop()


def _remove_empty(folder: Path) -> None:
    """Remove folders that hold no file; whatever somebody put there stays."""
    with contextlib.suppress(OSError):
        for path in [*sorted(folder.rglob("*"), reverse=True), folder]:
            path.rmdir()


def _drain(work: Path, plan: Plan, hold: int, server: QueueServer | None, manifest: Manifest) -> None:
    in_order = json.loads((work / ENDED).read_bytes()) if (work / ENDED).exists() else None
    ended = UtcAnchor(in_order["host_ns"], in_order["utc_ns"]) if in_order else last_beat(work)
    with _serving(plan, server):
        plan.save(work / "plan.json")
        (Path(plan.path) / LOGS).mkdir(exist_ok=True)
        supervisor = Supervisor(plan, server, [], hold=hold)
        outcome = supervisor.outcome
        outcome.problems += in_order["problems"] if in_order else _said_of(manifest)
        try:
            supervisor.drain()
        finally:
            supervisor.close()
        if in_order:
            outcome.reason = in_order["reason"]
            outcome.problems.append("its folder was away at the end; what the queue held was recovered")
        waiting = close_recording(plan, outcome, server, ended=ended)
    if waiting:
        raise StillWaiting(plan.recording, waiting, work)
    finish_recording(plan)


def _said_of(manifest: Manifest) -> list[str]:
    """Return what the manifest says of the recovery: a recorder that ended in order was not killed."""
    waiting = manifest.get("waiting")
    if not waiting:
        return ["its recorder was killed; what the queue held was recovered"]
    return [
        f"{facts['packets']} packets of {stream} waited in the queue ({facts['why']}) until they were recovered"
        for stream, facts in waiting.items()
    ]


def work_folders(data: Path) -> list[Path]:
    """Return the work folder of every recording below `data` that was not settled."""
    return [file.parent for file in sorted((data.resolve() / WORK).glob("*/plan.json"))]


def orphan_in(work: Path) -> Plan | None:
    """Return the plan of the recording that a work folder belongs to, with the path where the recording is now.

    None when it is being made, or has just ended. Raises BadPlan. The data folder may lie elsewhere than when it was
    recorded (a disk that is mounted under another name), and the recording may have another name below it.
    """
    try:
        plan = load_plan(work / "plan.json")
    except FileNotFoundError:
        return None  # its recorder has ended just now
    path = _where(work.parent.parent, plan)
    if is_running(Path(plan.runtime)) or is_running(runtime_folder(path)):
        return None
    return replace(plan, path=str(path))


def _where(data: Path, plan: Plan) -> Path:
    """Find a recording: under its own name, else by its uuid; what cannot be found is where it was."""
    usual = data / plan.recording
    try:
        if read_manifest(usual).get("uuid", plan.uuid) == plan.uuid:
            return usual
    except NotARecording:
        if (usual / MANIFEST).exists():
            return usual
    for folder, below, files in os.walk(data):
        if MANIFEST in files and _uuid_of(Path(folder)) == plan.uuid:
            return Path(folder)
        below[:] = [] if MANIFEST in files else [name for name in sorted(below) if name != WORK]
    return usual


def _uuid_of(recording: Path) -> str | None:
    try:
        return read_manifest(recording).get("uuid")
    except NotARecording:
        return None

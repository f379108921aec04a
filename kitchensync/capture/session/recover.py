"""Recover a recording whose recorder was killed or could not store everything: drain its queue and close it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from kitchensync.capture.errors import PlanOfOthers, RecordingGone, StillEnding, StillWaiting
from kitchensync.capture.lock import hold_lock
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
from kitchensync.capture.queue.queue_connection import RUNNING_READY_S, connect, connected, wait_until_ready
from kitchensync.capture.queue.server import QueueServer
from kitchensync.capture.session.closing import ENDED, clear_queue, close_recording, finish_recording
from kitchensync.capture.session.supervisor import Supervisor
from kitchensync.shell.host_clock import UtcAnchor
from kitchensync.storage.errors import ManifestLost, NotARecording
from kitchensync.storage.manifest import Manifest, read_manifest
from kitchensync.storage.names import LOGS, MANIFEST, PART_SUFFIX, WORK, holds_recorded_files, stream_key

ORPHANS_END_S = 15.0
"""Time for the processes of a killed supervisor to end by themselves."""


@dataclass
class Recovered:
    """Result of the recovery of all orphaned recordings."""

    paths: list[Path] = field(default_factory=list)
    """Recovered recordings."""
    failures: list[str] = field(default_factory=list)
    """One message for each of the others: the reason, where its packets are, and what to do."""


def recover_all(data: Path, *, accept_foreign: bool = False) -> Recovered:
    """Recover every orphan below `data`; a failure does not stop the others.

    A plan names servers to connect to, and a server of ours loads its queue file: plans written by another user or
    computer are only used with `accept_foreign`.
    """
    recovered = Recovered()
    for work in work_folders(data):
        try:
            plan = orphan_in(work)
            if plan is not None:
                if not (accept_foreign or is_ours(work / "plan.json")):
                    raise PlanOfOthers(work)
                recover(work, plan)
                recovered.paths.append(Path(plan.path))
        except Exception as error:  # noqa: BLE001 (whatever failed: the next recording is tried)
            why = " ".join(str(error).split()) or repr(error)
            recovered.failures.append(f"{work.name} is not recovered yet: {why}")
    return recovered


def recover(work: Path, plan: Plan) -> None:
    """Recover one recording and remove its work folder.

    It may be repeated after a crash. Raises StillEnding, RecordingGone, StillWaiting, QueueUnavailable and
    NotARecording; then the work folder stays.
    """
    is_own = plan.queue_url == own_queue_url(plan)
    try:
        with hold_lock(work / GROUP, ORPHANS_END_S) as hold:
            if (work / "plan.json").exists():  # else another process recovered it while we waited
                _open_and_settle(work, plan, hold, is_own=is_own)
    except BlockingIOError as error:
        raise StillEnding(plan.recording, ORPHANS_END_S) from error
    except FileNotFoundError:
        if work.exists():
            raise


def _open_and_settle(work: Path, plan: Plan, hold: int, *, is_own: bool) -> None:
    runtime = runtime_folder(Path(plan.path))
    shutil.rmtree(runtime, ignore_errors=True)
    runtime.mkdir(mode=0o700, parents=True)
    plan = replace(plan, work=str(work), runtime=str(runtime), supervisor_pid=os.getpid())
    server = QueueServer(work, runtime / QUEUE, hold=hold) if is_own else None
    if server is not None:
        plan = replace(plan, queue_url=server.url)
    try:
        with hold_lock(runtime / RUNNING):
            _settle(work, plan, hold, server)
    finally:
        shutil.rmtree(runtime, ignore_errors=True)


def _settle(work: Path, plan: Plan, hold: int, server: QueueServer | None) -> None:
    """Drain and close the recording, then remove the work folder."""
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
        with contextlib.suppress(OSError):  # the recorder was killed before the recording began
            for path in [*sorted(recording.rglob("*"), reverse=True), recording]:
                path.rmdir()
    shutil.rmtree(work)
    with contextlib.suppress(OSError):
        work.parent.rmdir()


def holds_packets(plan: Plan, server: QueueServer | None) -> bool:
    """Return whether the queue holds packets of a recording. Raises QueueUnavailable."""
    with _serving(plan, server), connected(plan.queue_url) as client:
        return any(client.xlen(stream_key(plan.uuid, stream)) for stream in plan.stored_streams())


@contextlib.contextmanager
def _serving(plan: Plan, server: QueueServer | None) -> Iterator[None]:
    """Make the queue available during the block: start our own server, or wait for the external one."""
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


def _drain(work: Path, plan: Plan, hold: int, server: QueueServer | None, manifest: Manifest) -> None:
    orderly_end = json.loads((work / ENDED).read_bytes()) if (work / ENDED).exists() else None
    ended = UtcAnchor(orderly_end["host_ns"], orderly_end["utc_ns"]) if orderly_end else last_beat(work)
    with _serving(plan, server):
        plan.save(work / "plan.json")
        (Path(plan.path) / LOGS).mkdir(exist_ok=True)
        supervisor = Supervisor(plan, server, [], hold=hold)
        outcome = supervisor.outcome
        outcome.problems += orderly_end["problems"] if orderly_end else _recovery_notes(manifest)
        try:
            supervisor.drain()
        finally:
            supervisor.close()
        if orderly_end:
            outcome.reason = orderly_end["reason"]
            outcome.problems.append("its folder was away at the end; what the queue held was recovered")
        waiting = close_recording(plan, outcome, server, ended=ended)
    if waiting:
        raise StillWaiting(plan.recording, waiting, work)
    finish_recording(plan)


def _recovery_notes(manifest: Manifest) -> list[str]:
    """Return the manifest's messages about the recovery."""
    waiting = manifest.get("waiting")
    if not waiting:
        return ["its recorder was killed; what the queue held was recovered"]
    return [
        f"{facts['packets']} packets of {stream} waited in the queue ({facts['why']}) until they were recovered"
        for stream, facts in waiting.items()
    ]


def work_folders(data: Path) -> list[Path]:
    """Return the work folder of every recording below `data` that is not closed."""
    return [file.parent for file in sorted((data.resolve() / WORK).glob("*/plan.json"))]


def orphan_in(work: Path) -> Plan | None:
    """Return the plan of a work folder with the current path of its recording; None while it is being recorded.

    The data folder may have moved since (a disk mounted elsewhere), and the recording may have been renamed. Raises
    BadPlan.
    """
    try:
        plan = load_plan(work / "plan.json")
    except FileNotFoundError:
        return None  # its recorder has just ended
    path = _locate(work.parent.parent, plan)
    if is_running(Path(plan.runtime)) or is_running(runtime_folder(path)):
        return None
    return replace(plan, path=str(path))


def _locate(data: Path, plan: Plan) -> Path:
    """Find a recording by its name, else by its uuid; return its planned path if both fail."""
    planned = data / plan.recording
    try:
        if read_manifest(planned).get("uuid", plan.uuid) == plan.uuid:
            return planned
    except NotARecording:
        if (planned / MANIFEST).exists():
            return planned
    for folder, subfolders, files in os.walk(data):
        if MANIFEST in files and _uuid_of(Path(folder)) == plan.uuid:
            return Path(folder)
        subfolders[:] = [] if MANIFEST in files else [name for name in sorted(subfolders) if name != WORK]
    return planned


def _uuid_of(recording: Path) -> str | None:
    try:
        return read_manifest(recording).get("uuid")
    except NotARecording:
        return None

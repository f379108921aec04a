"""Make one recording: checks, folder and manifest, the live part, and its closing."""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kitchensync.capture.camera.camera_recorder import CameraRecorder
from kitchensync.capture.errors import (
    AlreadyRunning,
    DiskTooFull,
    FolderNotWritable,
    NoInodesLeft,
    ProcessKeepsDying,
    StillWaiting,
    StreamsMissing,
)
from kitchensync.capture.lock import hold_lock
from kitchensync.capture.plan import GROUP, QUEUE, RUNNING, Plan, RecordingRequest, is_running, runtime_folder
from kitchensync.capture.process.fork_server import ForkServer
from kitchensync.capture.process.outcome import Outcome
from kitchensync.capture.queue.dry_run import check_server
from kitchensync.capture.queue.server import QueueServer
from kitchensync.capture.session.closing import (
    CLOSING,
    CLOSING_BYTES,
    UndrainedStream,
    clear_queue,
    close_recording,
    finish_recording,
    reserve_space,
)
from kitchensync.capture.session.devices_taken import addresses_of, check_free, take
from kitchensync.capture.session.first_manifest import first_manifest
from kitchensync.capture.session.no_sleep import kept_awake
from kitchensync.capture.session.recover import recover_all
from kitchensync.capture.session.supervisor import Supervisor
from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.hololens.remote import RemoteControl, is_virtual, replayed_uuid, require_version
from kitchensync.shell.end_signals import ending_at_signals
from kitchensync.shell.files_on_disk import lacks_inodes
from kitchensync.storage.copies.store_states import StoreReport, keep_store_states
from kitchensync.storage.disk.durable import make_durable_folders
from kitchensync.storage.errors import RecordingExists
from kitchensync.storage.installation.own_list import LineKind, own_list
from kitchensync.storage.lab import give_to_group, lab_of, share
from kitchensync.storage.manifest import edit_manifest, note_change, read_manifest, write_json
from kitchensync.storage.move.mover_process import MoverProcess
from kitchensync.storage.names import (
    LOGS,
    MADE_FROM,
    MANIFEST,
    WORK,
    check_new_recording,
    check_recording_id,
)

NEEDED_BYTES = 512 << 20
"""Least free space to begin with; the encoded rig fills it in about two and a half minutes at 3.3 MB/s."""


@dataclass
class Result:
    """Result of one recording."""

    path: Path
    outcome: Outcome
    warnings: list[str] = field(default_factory=list)
    waiting: StillWaiting | None = None
    """Packets that could not be stored and are still queued."""
    stores: list[StoreReport] = field(default_factory=list)
    """Progress of the copies."""


def record(
    order: RecordingRequest, show: Callable[[Supervisor], None], forks: ForkServer | None = None
) -> Result:
    """Make one recording; `forks` see `SupervisedProcess`.

    Raises CaptureError, SensorError, StorageError; then no incomplete recording stays behind.
    """
    if order.redis_url is not None:
        check_server(order.redis_url)
    path = _check_place(order)
    share(path)
    recovered = recover_all(order.data)
    plan = _plan(order, path)
    check_free(addresses_of(order), Path(plan.runtime))
    devices, warnings = _check_headsets(order)
    warnings += [
        f"{path.name} was left open by a killed recorder and is recovered" for path in recovered.paths
    ]
    warnings += recovered.failures
    cameras, absent = _prepared(order, path, devices)
    warnings += [f"{camera.device}: {note}" for camera in cameras for note in devices[camera.device]["notes"]]
    plan = replace(plan, cameras={camera.device: order.cameras[camera.device] for camera in cameras})
    waiting: list[UndrainedStream] = []
    with (
        _private_folders(order, plan) as work,
        kept_awake(order.recording) as asleep,
        _queue(order, plan, work.hold) as server,
    ):
        warnings += [asleep] if asleep else []
        plan = replace(plan, queue_url=server.url if server else str(order.redis_url))
        # First, because `recover` needs it to find a killed recording.
        plan.save(Path(plan.work) / "plan.json")
        make_durable_folders(path, order.data)
        give_to_group(path)
        try:
            (path / "events").mkdir()
            (path / LOGS).mkdir()
            manifest = first_manifest(order, plan, devices)
            if order.override:
                manifest["override"] = {"reason": order.override, "missing": absent}
            write_json(path / MANIFEST, manifest)
            if MADE_FROM in manifest:
                own_list(path).add(LineKind.MADE, plan.uuid, made_from=manifest[MADE_FROM])
            work.is_needed = True  # from here on its queue files may hold packets
            reserve_space(Path(plan.work) / CLOSING, CLOSING_BYTES)
            with _mover(order, path) as mover:
                supervisor = Supervisor(
                    plan,
                    server,
                    cameras,
                    hold=work.hold,
                    forks=forks,
                    mover=mover,
                    close=lambda outcome: _close(plan, outcome, server),
                    override=bool(order.override),
                )
                outcome, problems = _run(supervisor, order, show)
                waiting = supervisor.closed()
                work.is_needed = bool(waiting)
                if not waiting:
                    finish_recording(plan, problems)
                outcome.problems += problems
                stores = _end_of_copies(path, mover, is_closed=not waiting)
        except (StreamsMissing, ProcessKeepsDying):
            _remove_unstarted(path)
            if server is None:
                clear_queue(plan)
            work.is_needed = False
            raise
        except OSError as error:
            raise FolderNotWritable(path, f"{error.strerror or error}; what is sealed is kept") from error
    still_waiting = StillWaiting(plan.recording, waiting, Path(plan.work)) if waiting else None
    return Result(path, outcome, warnings, still_waiting, stores)


def _prepared(
    order: RecordingRequest, path: Path, devices: dict[str, Any]
) -> tuple[list[CameraRecorder], dict[str, str]]:
    """Set up the cameras and add them to `devices`.

    With an override missing cameras are skipped and returned with their errors.
    """
    cameras, absent = [], {}
    for name, url in order.cameras.items():
        camera = CameraRecorder(name, url, path / name, order.camera_settings)
        try:
            devices[name] = camera.prepare()
        except SensorError as error:
            if not order.override:
                raise
            absent[name] = str(error)
        else:
            cameras.append(camera)
    return cameras, absent


def _close(plan: Plan, outcome: Outcome, server: QueueServer | None) -> list[UndrainedStream]:
    """Close the recording; streams that were missing at its start are added to the override's entry."""
    if outcome.missing:
        with edit_manifest(Path(plan.path)) as manifest:
            manifest["override"]["missing"] |= outcome.missing
    return close_recording(plan, outcome, server)


@contextlib.contextmanager
def _mover(order: RecordingRequest, path: Path) -> Iterator[MoverProcess | None]:
    """Copy sealed files to the network stores while recording; `kitchensync move` copies the rest."""
    if not order.stores:
        yield None
        return
    mover = MoverProcess(path, order.stores, path / LOGS / "mover.log")
    mover.wait_for_first()
    try:
        yield mover
    finally:
        mover.stop()


def _end_of_copies(path: Path, mover: MoverProcess | None, *, is_closed: bool) -> list[StoreReport]:
    """Wait a while for the copies of a closed recording; save and return their progress."""
    if mover is None:
        return []
    if is_closed:
        mover.finish()
    stores = mover.reports()
    with contextlib.suppress(OSError):  # only `list` and `info` need the file
        keep_store_states(path, stores)
        note_change(path)
    return stores


def _remove_unstarted(path: Path) -> None:
    """Delete a recording that failed at its start; if it holds operator events, mark it as aborted instead."""
    if any((path / "events").iterdir()):
        with edit_manifest(path) as manifest:
            manifest["state"] = "aborted"
    else:
        shutil.rmtree(path)


def _check_place(order: RecordingRequest) -> Path:
    """Check id, folder and free space; return the recording's path."""
    path = order.data / check_recording_id(order.recording)
    if path.exists():
        raise RecordingExists(path)
    check_new_recording(path)
    if order.retake_of is not None:
        read_manifest(order.data / order.retake_of)
    try:
        order.data.mkdir(parents=True, exist_ok=True)
        # The work folder is private to the user who first recorded here.
        for folder in (order.data, order.data / WORK):
            if folder.exists() and not os.access(folder, os.W_OK | os.X_OK):
                raise FolderNotWritable(folder, "no permission")
        free, is_full = shutil.disk_usage(order.data).free, lacks_inodes(order.data)
    except OSError as error:
        raise FolderNotWritable(order.data, error.strerror or str(error)) from error
    if is_full:
        raise NoInodesLeft(order.data)
    if free < NEEDED_BYTES:
        raise DiskTooFull(order.data, free, NEEDED_BYTES)
    return path


def _check_headsets(order: RecordingRequest) -> tuple[dict[str, Any], list[str]]:
    """Query every headset; return the manifest entries by name, and warnings."""
    devices: dict[str, Any] = {}
    warnings: list[str] = []
    for headset in order.headsets:
        with RemoteControl(headset.host) as remote:
            server = remote.version()
            warning = require_version(server, order.accept_version)
            devices[headset.name] = {
                "kind": "hololens",
                "address": headset.host,
                "version": ".".join(map(str, server)),
                "utc_offset_ticks": remote.utc_offset(),
                "gyroscope_unit": order.gyroscope_unit,
            } | ({"virtual": True} if is_virtual(headset.host) else {})
            if replayed := replayed_uuid(headset.host):
                devices[headset.name]["replays"] = replayed
        warnings += [warning] if warning else []
    return devices, warnings


def _plan(order: RecordingRequest, path: Path) -> Plan:
    try:
        runtime = runtime_folder(path)
    except OSError as error:
        raise FolderNotWritable(Path(error.filename or "the runtime folder"), str(error)) from error
    return Plan(
        recording=order.recording,
        uuid=str(uuid.uuid4()),
        path=str(path.resolve()),
        work=str((order.data / WORK / order.recording).resolve()),
        runtime=str(runtime),
        queue_url="",
        headsets=order.headsets,
        cameras=order.cameras,
        sensors=order.sensors,
        linger_ms=order.linger_ms,
        supervisor_pid=os.getpid(),
        chunk_s=order.chunk_s,
        pause=lab_of(path).pause,
    )


@dataclass
class WorkFolder:
    """The private work folder of a recording; `hold` is the lock that every process of the recording shares."""

    hold: int
    is_needed: bool = False
    """Whether its queue files may hold packets; then the folder stays for `recover`."""


@contextlib.contextmanager
def _private_folders(order: RecordingRequest, plan: Plan) -> Iterator[WorkFolder]:
    """Create the private work folder and the runtime folder; remove them at the end unless they are needed."""
    work, runtime = Path(plan.work), Path(plan.runtime)
    try:
        runtime.mkdir(mode=0o700)
    except FileExistsError:
        if is_running(runtime):
            raise AlreadyRunning(order.recording) from None
        shutil.rmtree(runtime)  # left by a killed recorder
        runtime.mkdir(mode=0o700)
    try:
        work.parent.mkdir(mode=0o700, exist_ok=True)
        if work.exists():
            # Left by a killed recorder: its queue files may still hold packets.
            os.rename(work, work.with_name(f"{work.name}.orphan-{uuid.uuid4().hex[:8]}"))
        work.mkdir(mode=0o700)
        make_durable_folders(work, work.parent.parent)
        with hold_lock(runtime / RUNNING), hold_lock(work / GROUP) as hold:
            folder = WorkFolder(hold)
            try:
                take(addresses_of(order), order.recording, runtime)
                yield folder
            finally:
                if not folder.is_needed:  # under the lock, so that `recover` does not use it meanwhile
                    shutil.rmtree(work, ignore_errors=True)
    finally:
        shutil.rmtree(runtime, ignore_errors=True)
        with contextlib.suppress(OSError):
            work.parent.rmdir()


@contextlib.contextmanager
def _queue(order: RecordingRequest, plan: Plan, hold: int) -> Iterator[QueueServer | None]:
    """Run our own queue server during the block; yield None if an external one is used."""
    if order.redis_url is not None:
        yield None
        return
    server = QueueServer(Path(plan.work), Path(plan.runtime) / QUEUE, hold=hold)
    try:
        server.start()
        yield server
    finally:
        server.stop()


def _run(
    supervisor: Supervisor, order: RecordingRequest, show: Callable[[Supervisor], None]
) -> tuple[Outcome, list[str]]:
    """Run the recording to its end; return its outcome and the problems of the cameras."""
    try:
        with ending_at_signals(lambda: supervisor.request_stop("signal")):
            supervisor.run(order.seconds, order.start_timeout_s, show)
    finally:
        supervisor.close()
    return supervisor.outcome, [
        f"{camera.device}: {camera.state.problem}" for camera in supervisor.cameras if camera.state.problem
    ]

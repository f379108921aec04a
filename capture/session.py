"""One recording as a whole: checks before, folder and manifest, the live part, and the closing of the books."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import redis

from capture import queue
from capture.camera_take import CameraTake
from capture.errors import AlreadyRunning, CannotWrite, DiskTooFull, StreamsMissing
from capture.plan import HeadsetPlan, Plan, runtime_folder
from capture.queue_server import QueueServer
from capture.supervisor import Outcome, Supervisor, set_aside
from capture.zone import local_zone
from sensors.hololens.catalogue import Profile, describe, stream_spec
from sensors.hololens.remote import RemoteControl, require_version
from sensors.host_clock import utc_anchor
from storage.errors import RecordingExists
from storage.manifest import SCHEMA, Manifest, edit_manifest, read_manifest, write_json
from storage.names import LOGS, MANIFEST, WORK, check_recording_id, stream_folder, stream_key

NEEDED_BYTES = 512 << 20
"""Free space without which nothing is begun; at the encoded rig's 3.3 MB/s some two and a half minutes."""


BOOKS = "books"
BOOKS_BYTES = 4 << 20
"""Room kept aside for the manifest, so that a recording can be closed on a full disk."""


@dataclass(frozen=True)
class Order:
    """What the operator asked for."""

    recording: str
    data: Path
    headsets: list[HeadsetPlan]
    cameras: dict[str, str]
    seconds: float | None = None
    start_timeout_s: float = 30.0
    accept_version: str | None = None
    redis_url: str | None = None
    retake_of: str | None = None
    consent: str = "none"
    participant: str = ""
    place: str = ""
    gyroscope_unit: str = "auto"
    """`auto` lets the alignment find it; `deg_per_s` or `rad_per_s` state it."""


@dataclass
class Result:
    """What came of it."""

    path: Path
    outcome: Outcome
    warnings: list[str] = field(default_factory=list)


def record(order: Order, show: Callable[[Supervisor], None]) -> Result:
    """Make one recording. Raises CaptureError, SensorError, StorageError; then nothing half-made is left."""
    path = _check_place(order)
    devices, warnings = _check_headsets(order)
    cameras = [CameraTake(name, url, path / name) for name, url in order.cameras.items()]
    devices |= {camera.device: camera.prepare() for camera in cameras}
    plan = _plan(order, path)
    with _private_folders(order, plan), _queue(order, plan) as server:
        plan = replace(plan, queue_url=server.url if server else str(order.redis_url))
        path.mkdir()
        try:
            write_json(path / MANIFEST, _manifest(order, plan, devices))
            (path / "events").mkdir()
            (path / LOGS).mkdir()
            plan.save(Path(plan.work) / "plan.json")
            set_aside(Path(plan.work) / BOOKS, BOOKS_BYTES)
            outcome = _run(order, plan, server, cameras, show)
            _close_books(order, plan, outcome)
        except StreamsMissing:
            shutil.rmtree(path)  # refused at its start: nothing half-made is left
            raise
        except OSError as error:
            raise CannotWrite(path, f"{error.strerror or error}; what is sealed is kept") from error
    return Result(path, outcome, warnings)


def _check_place(order: Order) -> Path:
    """Check id, folder and free space before anything is touched."""
    check_recording_id(order.recording)
    path = order.data / order.recording
    if path.exists():
        raise RecordingExists(path)
    if order.retake_of is not None:
        read_manifest(order.data / order.retake_of)
    try:
        order.data.mkdir(parents=True, exist_ok=True)
        if not os.access(order.data, os.W_OK | os.X_OK):
            raise CannotWrite(order.data, "no permission")
        free = shutil.disk_usage(order.data).free
    except OSError as error:
        raise CannotWrite(order.data, error.strerror or str(error)) from error
    if free < NEEDED_BYTES:
        raise DiskTooFull(order.data, free, NEEDED_BYTES)
    return path


def _check_headsets(order: Order) -> tuple[dict[str, Any], list[str]]:
    """Ask every headset what it is; return its entry for the manifest, and warnings."""
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
            }
        warnings += [warning] if warning else []
    return devices, warnings


def _plan(order: Order, path: Path) -> Plan:
    try:
        runtime = runtime_folder(path)
    except OSError as error:
        raise CannotWrite(Path(error.filename or "the runtime folder"), str(error)) from error
    return Plan(
        recording=order.recording,
        uuid=str(uuid.uuid4()),
        path=str(path.resolve()),
        work=str((order.data / WORK / order.recording).resolve()),
        runtime=str(runtime),
        queue_url="",
        headsets=order.headsets,
        cameras=order.cameras,
        supervisor_pid=os.getpid(),
    )


@contextlib.contextmanager
def _private_folders(order: Order, plan: Plan) -> Iterator[None]:
    """Make the private work folder and the folder of sockets; remove both at the end."""
    work, runtime = Path(plan.work), Path(plan.runtime)
    try:
        runtime.mkdir(mode=0o700)
    except FileExistsError:
        if _is_running(runtime):
            raise AlreadyRunning(order.recording) from None
        shutil.rmtree(runtime)  # a recorder was killed: its sockets are of no use to anyone
        runtime.mkdir(mode=0o700)
    (runtime / "pid").write_text(str(os.getpid()))
    try:
        work.parent.mkdir(mode=0o700, exist_ok=True)
        if work.exists():
            # Kept from a recorder that was killed: packets may still be in its queue file.
            os.rename(work, work.with_name(f"{work.name}.orphan-{uuid.uuid4().hex[:8]}"))
        work.mkdir(mode=0o700)
        yield
    finally:
        shutil.rmtree(work, ignore_errors=True)
        shutil.rmtree(runtime, ignore_errors=True)
        with contextlib.suppress(OSError):
            work.parent.rmdir()


def _is_running(runtime: Path) -> bool:
    try:
        pid = int((runtime / "pid").read_text())
        os.kill(pid, 0)
    except (OSError, ValueError):
        return False
    return True


@contextlib.contextmanager
def _queue(order: Order, plan: Plan) -> Iterator[QueueServer | None]:
    """Start our own queue server, or reach the one that was named."""
    if order.redis_url is not None:
        with queue.connect(order.redis_url) as client:
            queue.wait_until_ready(client, order.redis_url, limit_s=5)
        yield None
        return
    server = QueueServer(Path(plan.work), Path(plan.runtime) / "queue")
    try:
        server.start()
        yield server
    finally:
        server.stop()


def _manifest(order: Order, plan: Plan, devices: dict[str, Any]) -> Manifest:
    anchor = utc_anchor()
    streams = {}
    for headset in order.headsets:
        profile = Profile(**headset.profile)
        for short in headset.streams:
            streams[f"{headset.name}/{short}"] = {
                "device": headset.name,
                "port": stream_spec(short).port,
                "nominal_hz": stream_spec(short).nominal_hz,
                "format": describe(short, profile),
            }
    return {
        "schema": SCHEMA,
        "recording": plan.recording,
        "uuid": plan.uuid,
        "state": "recording",
        "retake_of": order.retake_of,
        "started": {"host_ns": anchor.host_ns, "utc_ns": anchor.utc_ns},
        "stopped": None,
        "zone": local_zone(anchor.utc_ns),
        "consent": order.consent,
        "pseudonym": order.participant,
        "place": order.place,
        "recipe": None,
        "devices": devices,
        "profile": {headset.name: headset.profile for headset in order.headsets},
        "streams": streams,
        "software": {"kitchensync": version("kitchensync")},
        "files": {},
    }


def _run(
    order: Order,
    plan: Plan,
    server: QueueServer | None,
    cameras: list[CameraTake],
    show: Callable[[Supervisor], None],
) -> Outcome:
    supervisor = Supervisor(plan, server, cameras)
    try:
        with _signals(supervisor):
            supervisor.run(order.seconds, order.start_timeout_s, show)
    finally:
        supervisor.close()
    outcome = supervisor.outcome
    outcome.problems += [
        f"{camera.device}: {camera.state.problem}" for camera in cameras if camera.state.problem
    ]
    return outcome


@contextlib.contextmanager
def _signals(supervisor: Supervisor) -> Iterator[None]:
    """Turn Ctrl-C and SIGTERM into the orderly end while the recording runs."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {
        number: signal.signal(number, lambda *_: supervisor.ask_stop("signal"))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _close_books(order: Order, plan: Plan, outcome: Outcome) -> None:
    """Put hashes, losses and the end into the manifest, and clear the queue on a server of yours."""
    files: dict[str, Any] = {}
    losses: list[dict[str, Any]] = []
    with queue.connect(plan.queue_url) as client:
        for stream in plan.stored_streams():
            for name, facts in queue.sealed_files(client, plan.uuid, stream).items():
                relative = stream_folder(Path(plan.path), stream).relative_to(plan.path) / name
                files[str(relative)] = facts
            losses += _left_behind(client, plan, stream, outcome)
            if order.redis_url is not None:
                client.delete(stream_key(plan.uuid, stream), queue.files_key(plan.uuid, stream))
    anchor = utc_anchor()
    (Path(plan.work) / BOOKS).unlink(missing_ok=True)
    with edit_manifest(Path(plan.path)) as manifest:
        manifest["state"] = "complete"
        manifest["stopped"] = {"host_ns": anchor.host_ns, "utc_ns": anchor.utc_ns, "reason": outcome.reason}
        manifest["files"] = files
        manifest["restarts"] = outcome.restarts
        manifest["problems"] = outcome.problems
        manifest["declared_losses"] = losses


def _left_behind(client: redis.Redis, plan: Plan, stream: str, outcome: Outcome) -> list[dict[str, Any]]:
    """Name the packets that are still in the queue because they could not be stored."""
    entries: Any = client.xrange(stream_key(plan.uuid, stream))
    if not entries:
        return []
    sequences = [int(entry_id.split(b"-")[1]) for entry_id, _ in entries]
    cause = "no_space" if outcome.reason == "no_space" else "declared_loss"
    return [{"stream": stream, "first_seq": sequences[0], "last_seq": sequences[-1], "cause": cause}]

"""The request for a recording, and its plan, which its processes share in a private file."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from kitchensync.capture.errors import BadPlan
from kitchensync.capture.lock import is_held
from kitchensync.shell.untrusted_json import BadJson, load_json
from kitchensync.storage.disk.durable import PRIVATE, write_whole
from kitchensync.storage.installation.key import is_signed, signed
from kitchensync.storage.names import CLOCK_STREAMS, LEDGER_STREAMS, PART_SUFFIX

LINGER_MS = 50
"""Default and largest time for which packets are gathered; a killed producer loses the gathered packets.

With 20 ms a recorded second of the encoded rig takes a quarter more CPU time."""
RUNNING = "running"
"""Lock in the runtime folder that the recorder holds while it runs."""
QUEUE = "queue"
"""Socket of the queue server in the runtime folder."""
GROUP = "group"
"""Lock in the work folder that every process of a recording holds."""
SIGNED = "signed"
"""Key of the signature in the file of a plan."""


@dataclass(frozen=True)
class HeadsetPlan:
    """One headset: its address and the streams to record."""

    name: str
    host: str
    streams: list[str]
    profile: dict[str, Any]


@dataclass(frozen=True)
class SensorPlan:
    """One plug-in sensor: its kind, the streams to record, and its table of the rig file."""

    name: str
    kind: str
    streams: list[str]
    settings: dict[str, Any]


@dataclass(frozen=True)
class RecordingRequest:
    """One recording as requested by the operator."""

    recording: str
    data: Path
    headsets: list[HeadsetPlan]
    cameras: dict[str, str]
    sensors: list[SensorPlan] = field(default_factory=list, kw_only=True)
    camera_settings: dict[str, Any] = field(default_factory=dict, kw_only=True)
    seconds: float | None = None
    start_timeout_s: float = 30.0
    accept_version: str | None = None
    redis_url: str | None = None
    retake_of: str | None = None
    consent: str = "none"
    participant: str = ""
    place: str = ""
    chunk_s: float = 10.0
    stores: list[Path] = field(default_factory=list)
    """Folders of network stores that get a verified copy while recording."""
    gyroscope_unit: str = "auto"
    """`auto` lets the alignment determine it; else `deg_per_s` or `rad_per_s`."""
    linger_ms: int = LINGER_MS
    override: str = ""
    """Reason to begin although devices or streams are missing, "" not to."""


@dataclass(frozen=True)
class Plan:
    """Plan of one recording."""

    recording: str
    uuid: str
    path: str
    work: str
    runtime: str
    queue_url: str
    headsets: list[HeadsetPlan]
    cameras: dict[str, str] = field(default_factory=dict)
    drainers: Annotated[int, Field(ge=1)] = 2
    supervisor_pid: int = 0
    sensors: list[SensorPlan] = field(default_factory=list)
    chunk_s: float = 10.0
    """Age of a chunk's first packet at which the chunk is sealed."""
    pause: str = "mark"
    """Treatment of privacy pauses from lab.toml: "mark" or "drop"."""
    linger_ms: int = LINGER_MS
    """Time for which packets are gathered into a batch; 0 sends each by itself."""

    @property
    def devices(self) -> list[HeadsetPlan | SensorPlan]:
        """Headsets and plug-in sensors."""
        return [*self.headsets, *self.sensors]

    @property
    def producers(self) -> list[str]:
        """Names of the devices that send packets; each has a producer."""
        return [device.name for device in self.devices]

    @property
    def health(self) -> str:
        """Endpoint where the supervisor receives the states of its processes."""
        return f"ipc://{self.runtime}/health"

    @property
    def control(self) -> str:
        """Endpoint where the supervisor receives requests such as stop."""
        return f"ipc://{self.runtime}/control"

    def sensor_streams(self) -> list[str]:
        """Return the full names of all streams that devices send."""
        return [f"{device.name}/{short}" for device in self.devices for short in device.streams]

    def stored_streams(self) -> list[str]:
        """Return every stream that drainers store: sensors, clock probes, and the ledger of each device."""
        extra = [name for device in self.producers for name in (clock_stream(device), ledger_stream(device))]
        return [*self.sensor_streams(), *extra]

    def share(self, drainer: int) -> list[str]:
        """Return the streams of the n-th drainer; every stream has exactly one drainer."""
        return self.stored_streams()[drainer :: self.drainers]

    def save(self, path: Path) -> None:
        """Write the plan for the processes and for `recover`, so that it survives a power cut.

        It is signed because `recover` connects to servers and starts processes according to it.
        """
        content = json.loads(json.dumps(asdict(self)))
        content |= {SIGNED: signed(_signed_text(content))}
        write_whole(path, [json.dumps(content, indent=1).encode()], PART_SUFFIX, PRIVATE)


@functools.cache
def _form() -> TypeAdapter[Plan]:
    return TypeAdapter(Plan)


def load_plan(path: Path) -> Plan:
    """Read a plan that `save` wrote. Raises BadPlan."""
    try:
        return _form().validate_python(load_json(path))
    except ValidationError as error:
        first = error.errors()[0]
        raise BadPlan(path, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    except BadJson as error:
        raise BadPlan(path, str(error)) from error


def is_ours(path: Path) -> bool:
    """Return whether this user on this computer wrote a plan. Raises BadPlan."""
    try:
        content = load_json(path)
    except BadJson as error:
        raise BadPlan(path, str(error)) from error
    code = content.pop(SIGNED, None)
    return is_signed(_signed_text(content), code)


def _signed_text(content: dict[str, Any]) -> bytes:
    return json.dumps(content, sort_keys=True).encode()


def clock_stream(device: str) -> str:
    """Return the name of the stream of clock probes of a device."""
    return f"{CLOCK_STREAMS}/{device}"


def ledger_stream(device: str) -> str:
    """Return the name of the stream of ledger notes about a device's streams."""
    return f"{LEDGER_STREAMS}/{device}"


def own_queue_url(plan: Plan) -> str:
    """Return the address of the recording's own queue server; any other address is an external server."""
    return f"unix://{Path(plan.runtime) / QUEUE}"


def has_own_queue(plan: Plan) -> bool:
    """Return whether the queue server is the recording's own, which writes to the same disk."""
    return plan.queue_url.startswith(f"unix://{plan.runtime}/")


def runtime_folder(recording: Path) -> Path:
    """Return the folder of a recording's sockets; its name is short and depends on the whole path."""
    return runtime_root() / hashlib.sha256(str(recording.resolve()).encode()).hexdigest()[:16]


def is_running(runtime: Path) -> bool:
    """Return whether the recorder with this runtime folder runs."""
    return is_held(runtime / RUNNING)


def runtime_root() -> Path:
    """Return the private folder (0700, ours) for the sockets of running recordings.

    Raises PermissionError if it belongs to another user or is open to others.
    """
    base = os.environ.get("XDG_RUNTIME_DIR")
    root = Path(base) / "kitchensync" if base else Path(tempfile.gettempdir()) / f"kitchensync-{os.getuid()}"
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = root.stat()
    if status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise PermissionError(f"{root} is not a private folder of ours")
    return root

"""What a running recording tells other processes of the same user: facts, not judged."""

from __future__ import annotations

import os
from dataclasses import asdict
from math import isfinite
from typing import Any

from kitchensync.capture.camera.camera_recorder import CameraRecorder
from kitchensync.capture.plan import Plan
from kitchensync.capture.process.cpu_pressure import waits_percent
from kitchensync.capture.process.health import Health
from kitchensync.capture.queue.server import QueueServer
from kitchensync.sensors.host_clock import host_ns
from kitchensync.storage.disk.space_guard import Outlook
from kitchensync.storage.shell.loopback import is_loopback_address


def told_state(
    plan: Plan,
    pids: dict[str, int],
    server: QueueServer | None,
    states: dict[str, Health],
    cameras: list[CameraRecorder],
    outlook: Outlook | None,
    stores: list[dict[str, Any]],
) -> dict[str, Any]:
    """Return what is recorded and how its processes, cameras, disk and stores are."""
    if server is not None and server.process is not None:
        pids = pids | {"queue server": server.process.pid}
    return {
        "recording": plan.recording,
        "path": plan.path,
        "pid": os.getpid(),
        "host_ns": host_ns(),
        "waits_percent": waits_percent(),
        "here": [one.name for one in plan.headsets if is_loopback_address(one.host)],
        "processes": pids,
        "heard": {name: _heard(state) for name, state in states.items()},
        "cameras": {one.device: asdict(one.state) for one in cameras},
        "disk": _disk(outlook),
        "stores": stores,
    }


def _heard(state: dict[str, Any]) -> dict[str, Any]:
    """Report when a process told last how it is, whether it has ended, its clock probes and when one was answered."""
    clock = {key: state.get(key) for key in ("probes", "answered_host_ns")}
    return {"host_ns": state["host_ns"], "done": bool(state.get("done")), **clock}


def _disk(seen: Outlook | None) -> dict[str, Any]:
    """Report what the guard of the disk saw last; nothing before its first look. No minutes: nothing is used up."""
    if seen is None:
        return {}
    minutes = round(seen.minutes_left, 1) if isfinite(seen.minutes_left) else None
    return {"level": seen.level, "free_bytes": seen.free_bytes, "minutes_left": minutes}

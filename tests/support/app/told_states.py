"""Made-up state of a running recording: healthy, or with changes."""

from __future__ import annotations

import copy
from typing import Any

SECOND = 10**9


def told_state(now_ns: int, **changes: Any) -> dict[str, Any]:
    """Return a healthy state at a time; a change applies to the state, else to its stream, else to its camera."""
    stream = {
        "state": "streaming",
        "received": 3000,
        "stored": 2800,
        "bytes": 9_000_000,
        "first_host_ns": now_ns - 100 * SECOND,
        "last_host_ns": now_ns - SECOND // 4,
        "rate_hz": 29.9,
        "nominal_hz": 30.0,
        "adaptive": False,
        "connections": 1,
        "problem": "",
        "fault": "",
        "ended": "",
        "losses": 0,
        "flagged": 0,
        "flagged_host_ns": 0,
        "lost_host_ns": 0,
        "still_host_ns": 0,
        "left_host_ns": 0,
    }
    camera = {
        "state": "recording",
        "problem": "",
        "battery_percent": 80,
        "minutes_left": 60.0,
        "recorded_s": 9,
        "gaps": [],
    }
    told_ns = now_ns - SECOND // 5
    heard = {"host_ns": told_ns, "done": False, "probes": 3, "answered_host_ns": told_ns - SECOND}
    told: dict[str, Any] = {
        "recording": "take",
        "path": "data/take",
        "pid": 1,
        "phase": "recording",
        "stop_asked": "",
        "ledger_closed": False,
        "host_ns": now_ns,
        "problems": [],
        "befallen": [],
        "waits_percent": 3.0,
        "here": [],
        "waiting": "",
        "restarts": [],
        "processes": {},
        "clock_set_by_ns": [],
        "queue_refuses": "",
        "queue_silent_s": 0.0,
        "queue_evicts": "",
        "queue_vanished_ns": 0,
        "disk": {"level": "ok", "free_bytes": 90 * 10**9, "minutes_left": None},
        "stores": [],
        "heard": {"producer hololens": heard},
        "streams": {"hololens/pv": stream},
        "cameras": {"gopro": camera},
    }
    for name, value in copy.deepcopy(changes).items():
        part = next((part for part in (told, stream, camera) if name in part), None)
        assert part is not None, name
        part[name] = value
    return told

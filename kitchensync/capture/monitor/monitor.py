"""Watches the recordings that this user is making: asks each how it is, and judges it by the rules."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kitchensync.capture.monitor.live_findings import UNKNOWN, findings_in, health_of, stream_facts
from kitchensync.capture.monitor.process_use import CpuMeter
from kitchensync.capture.plan import is_running, runtime_root
from kitchensync.capture.session.control import ask, is_in
from kitchensync.shell.host_clock import host_ns

ASK_MS = 500
AGAIN_NS = 400_000_000
"""Who looks sooner again is told the same: several may look through one monitor."""
RATES_KEPT = 60
STREAM_SAID = (
    *("state", "received", "stored", "waiting", "bytes", "rate_hz", "nominal_hz", "adaptive", "silent_s"),
    *("connections", "losses", "flagged", "problem"),
)
"""What is told of each stream."""


class RecordingMonitor:
    """Remembers between two looks what one look cannot tell: rates of the last minute, CPU, who was there."""

    def __init__(self) -> None:
        """Know of no recording."""
        self._cpu = CpuMeter()
        self._known: dict[Path, dict[str, Any]] = {}
        self._rates: dict[tuple[Path, str], deque[float]] = {}
        self._views: dict[Path, dict[str, Any]] = {}
        self._lock = threading.Lock()

    def look(
        self, recording: str | None = None, data: Path | None = None, *, wait_ms: int = ASK_MS
    ) -> list[dict[str, Any]]:
        """Return how every running recording is, those in a data folder, or the one named; empty when none is there.

        Each is waited for `wait_ms` at most; without an answer what it told last is judged again.
        """
        endpoints = sorted(runtime_root().glob("*/control"))
        found = [view for one in endpoints if (view := self.look_at(one, wait_ms=wait_ms)) is not None]
        if data is not None:
            found = [view for view in found if "path" in view and is_in(view["path"], data)]
        return [view for view in found if recording in (None, view["recording"])]

    def look_at(self, endpoint: Path, *, wait_ms: int = ASK_MS) -> dict[str, Any] | None:
        """Return how the recording with this control socket is; None when nobody records there. From any thread."""
        with self._lock:
            seen = self._views.get(endpoint)
            if seen is not None and host_ns() - seen["host_ns"] < AGAIN_NS:
                return seen
            state = ask(endpoint, "state", limit_ms=wait_ms)
            if state is not None:
                self._known[endpoint] = state
            elif not is_running(endpoint.parent):
                self._known.pop(endpoint, None)
                self._views.pop(endpoint, None)
                self._rates = {key: rates for key, rates in self._rates.items() if key[0] != endpoint}
                return None
            last = self._known.get(endpoint)
            name = str(last["recording"]) if last else endpoint.parent.name
            self._views[endpoint] = self._view(endpoint, name, last)
            return self._views[endpoint]

    def _view(self, endpoint: Path, name: str, state: dict[str, Any] | None) -> dict[str, Any]:
        """Return one recording as `top/1` tells it: `health` unknown where nothing newer than 3 s is known."""
        now_ns = host_ns()
        if state is None:
            return {"recording": name, "health": UNKNOWN, "host_ns": now_ns, "news_s": None, "findings": []}
        found = findings_in(state)
        return {
            "recording": name,
            "path": state["path"],
            "health": health_of(state, now_ns, found),
            "host_ns": now_ns,
            "news_s": round((now_ns - state["host_ns"]) / 1e9, 3),
            "waiting_for": state["waiting"],
            "ledger_closed": state["ledger_closed"],
            "findings": [asdict(one) for one in found],
            "streams": {
                stream: self._stream(endpoint, stream, facts, state)
                for stream, facts in state["streams"].items()
            },
            "cameras": {
                camera: {key: value for key, value in facts.items() if key != "gaps"}
                for camera, facts in state["cameras"].items()
            },
            "disk": state["disk"],
            "stores": state["stores"],
            "processes": self._processes(state),
            "restarts": len(state["restarts"]),
        }

    def _stream(
        self, endpoint: Path, name: str, facts: dict[str, Any], state: dict[str, Any]
    ) -> dict[str, Any]:
        heard = state["heard"].get(f"producer {name.partition('/')[0]}", {})
        said = stream_facts(name, facts, heard.get("host_ns", state["host_ns"]))
        rates = self._rates.setdefault((endpoint, name), deque(maxlen=RATES_KEPT))
        rates.append(said["rate_hz"])
        return {key: said.get(key) for key in STREAM_SAID} | {"rates_hz": list(rates)}

    def _processes(self, state: dict[str, Any]) -> dict[str, dict[str, Any]]:
        pids = {"recorder": state["pid"], **state["processes"]}
        heard = state["heard"]
        return {
            name: {"pid": pid, **self._cpu.look(pid), "probes": heard.get(name, {}).get("probes")}
            for name, pid in pids.items()
        }

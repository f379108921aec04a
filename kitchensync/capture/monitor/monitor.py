"""Monitor the running recordings of this user: query the state of each and judge it by the rules."""

from __future__ import annotations

import os
import threading
from collections import deque
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NotRequired, TypedDict, cast

from kitchensync.capture.monitor.live_findings import UNKNOWN, findings_in, health_of, stream_facts
from kitchensync.capture.plan import is_running, runtime_root
from kitchensync.capture.session.control import ask, is_in
from kitchensync.shell.host_clock import host_ns

TICK_HZ, PAGE_BYTES = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
_USER, _SYSTEM, _START, _PAGES = 11, 12, 19, 21
"""Fields of /proc/PID/stat after the name, see proc(5): utime, stime, starttime, rss."""


@dataclass(frozen=True)
class ProcessUse:
    """Use of one process so far: CPU time and age in seconds, memory in bytes."""

    cpu_s: float
    age_s: float
    memory_bytes: int


def process_use(pid: int, proc: Path = Path("/proc")) -> ProcessUse | None:
    """Return the use of a process, None if it has ended."""
    try:
        fields = (proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
        up_s = float((proc / "uptime").read_text().split()[0])
    except (OSError, IndexError):
        return None
    cpu_s = (int(fields[_USER]) + int(fields[_SYSTEM])) / TICK_HZ
    return ProcessUse(cpu_s, up_s - int(fields[_START]) / TICK_HZ, int(fields[_PAGES]) * PAGE_BYTES)


class CpuUse(TypedDict):
    """Use of a process."""

    cpu_share: float | None
    "1.0 is one core."
    memory_bytes: int | None


class CpuMeter:
    """Measures the share of a core that processes use, since the last call, at first since their start."""

    def __init__(self) -> None:
        self._before: dict[int, ProcessUse] = {}

    def use_of(self, pid: int) -> CpuUse:
        """Return the use of a process; both values are None if it has ended."""
        now = process_use(pid)
        if now is None:
            self._before.pop(pid, None)
            return {"cpu_share": None, "memory_bytes": None}
        before = self._before.get(pid, ProcessUse(0.0, 0.0, 0))
        span_s = now.age_s - before.age_s
        share = round((now.cpu_s - before.cpu_s) / span_s, 3) if span_s > 0 else None
        self._before[pid] = now
        return {"cpu_share": share, "memory_bytes": now.memory_bytes}


ASK_MS = 500  # a recorder answers once a round, normally of 100 ms
REUSE_NS = 400_000_000
"""Age up to which a view is reused, because several clients may share one monitor."""
RATES_KEPT = 60  # half a minute of `top`, which looks twice a second
STREAM_KEYS = (
    *("state", "received", "stored", "waiting", "bytes", "rate_hz", "nominal_hz", "adaptive", "silent_s"),
    *("connections", "losses", "flagged", "problem"),
)
"""Facts of each stream in a view."""


class StreamView(TypedDict):
    """One stream of a running recording."""

    state: str | None
    received: int | None
    stored: int | None
    waiting: int
    "Packets that are not on disk yet."
    bytes: int | None
    rate_hz: float
    nominal_hz: float | None
    adaptive: bool | None
    silent_s: float
    connections: int | None
    losses: int | None
    flagged: str | None
    problem: str
    rates_hz: list[float]


class ProcessView(CpuUse):
    """One process of a recorder."""

    pid: int
    probes: int | None
    "Clock probes that a device answered."


class RecordingView(TypedDict):
    """One running recording; without an answer of its recorder only the first keys."""

    recording: str
    health: str
    host_ns: int
    news_s: float | None
    "Age of the state."
    findings: list[dict[str, str]]
    path: NotRequired[str]
    waiting_for: NotRequired[list[str]]
    ledger_closed: NotRequired[bool]
    streams: NotRequired[dict[str, StreamView]]
    cameras: NotRequired[dict[str, dict[str, Any]]]
    disk: NotRequired[dict[str, Any]]
    stores: NotRequired[list[dict[str, Any]]]
    processes: NotRequired[dict[str, ProcessView]]
    restarts: NotRequired[int]


class RecordingMonitor:
    """Views of the running recordings; remembers earlier states, rates and CPU times."""

    def __init__(self) -> None:
        self._cpu = CpuMeter()
        self._states: dict[Path, dict[str, Any]] = {}
        self._rates: dict[tuple[Path, str], deque[float]] = {}
        self._views: dict[Path, RecordingView] = {}
        self._lock = threading.Lock()

    def views(
        self, recording: str | None = None, data: Path | None = None, *, wait_ms: int = ASK_MS
    ) -> list[RecordingView]:
        """Return the views of all running recordings, of those in a data folder, or of the named one.

        Each is given `wait_ms` to answer; without an answer its last state is judged again.
        """
        endpoints = sorted(runtime_root().glob("*/control"))
        views = [view for path in endpoints if (view := self.view(path, wait_ms=wait_ms)) is not None]
        if data is not None:
            views = [view for view in views if "path" in view and is_in(view["path"], data)]
        return [view for view in views if recording in (None, view["recording"])]

    def view(self, endpoint: Path, *, wait_ms: int = ASK_MS) -> RecordingView | None:
        """Return the view of the recording with this control socket, None if it does not run. Thread-safe."""
        with self._lock:
            view = self._views.get(endpoint)
            if view is not None and host_ns() - view["host_ns"] < REUSE_NS:
                return view
            state = ask(endpoint, "state", limit_ms=wait_ms)
            if state is not None:
                self._states[endpoint] = state
            elif not is_running(endpoint.parent):
                self._states.pop(endpoint, None)
                self._views.pop(endpoint, None)
                self._rates = {key: rates for key, rates in self._rates.items() if key[0] != endpoint}
                return None
            last = self._states.get(endpoint)
            name = str(last["recording"]) if last else endpoint.parent.name
            self._views[endpoint] = self._view(endpoint, name, last)
            return self._views[endpoint]

    def _view(self, endpoint: Path, name: str, state: dict[str, Any] | None) -> RecordingView:
        """Return the view of one recording as in `top/1`; `health` is unknown without a state of the last 3 s."""
        now_ns = host_ns()
        if state is None:
            return {"recording": name, "health": UNKNOWN, "host_ns": now_ns, "news_s": None, "findings": []}
        findings = findings_in(state)
        return {
            "recording": name,
            "path": state["path"],
            "health": health_of(state, now_ns, findings),
            "host_ns": now_ns,
            "news_s": round((now_ns - state["host_ns"]) / 1e9, 3),
            "waiting_for": state["waiting"],
            "ledger_closed": state["ledger_closed"],
            "findings": [asdict(finding) for finding in findings],
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

    def _stream(self, endpoint: Path, name: str, facts: dict[str, Any], state: dict[str, Any]) -> StreamView:
        heard = state["heard"].get(f"producer {name.partition('/')[0]}", {})
        facts = stream_facts(name, facts, heard.get("host_ns", state["host_ns"]))
        rates = self._rates.setdefault((endpoint, name), deque(maxlen=RATES_KEPT))
        rates.append(facts["rate_hz"])
        return cast("StreamView", {key: facts.get(key) for key in STREAM_KEYS} | {"rates_hz": list(rates)})

    def _processes(self, state: dict[str, Any]) -> dict[str, ProcessView]:
        pids = {"recorder": state["pid"], **state["processes"]}
        heard = state["heard"]
        return {
            name: {"pid": pid, **self._cpu.use_of(pid), "probes": heard.get(name, {}).get("probes")}
            for name, pid in pids.items()
        }

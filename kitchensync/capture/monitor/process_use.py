"""CPU and memory use of processes, read from /proc."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

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


class CpuMeter:
    """Measures the share of a core that processes use, since the last call, at first since their start."""

    def __init__(self) -> None:
        self._before: dict[int, ProcessUse] = {}

    def use_of(self, pid: int) -> dict[str, float | int | None]:
        """Return `cpu_share` (1.0 is one core) and `memory_bytes` of a process; both None if it has ended."""
        now = process_use(pid)
        if now is None:
            self._before.pop(pid, None)
            return {"cpu_share": None, "memory_bytes": None}
        before = self._before.get(pid, ProcessUse(0.0, 0.0, 0))
        span_s = now.age_s - before.age_s
        share = round((now.cpu_s - before.cpu_s) / span_s, 3) if span_s > 0 else None
        self._before[pid] = now
        return {"cpu_share": share, "memory_bytes": now.memory_bytes}

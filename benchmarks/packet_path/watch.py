"""Follow the processes of a recorder from outside: CPU to the nanosecond, memory, by kind."""

from __future__ import annotations

import contextlib
import resource
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

LOOK_S = 0.02
SEARCH_EVERY = 10
"""Looks between two searches for new processes, and between two readings of memory."""

KINDS = {
    "kitchensync producer": "producer",
    "kitchensync drainer": "drainer",
    "kitchensync fork server": "fork server",
    "valkey": "server",
}
SUPERVISOR = "supervisor"


@dataclass
class Seen:
    """One process: `cpu` is a series of (monotonic ns, CPU ns since its start)."""

    kind: str
    cpu: list[tuple[int, int]] = field(default_factory=list)
    """How often one of its threads that live now has waited for something."""

    def used_ns(self, begin_ns: int, end_ns: int) -> int:
        """CPU between two moments; what is known last counts where it ended before."""
        return _at(self.cpu, end_ns, after=True) - _at(self.cpu, begin_ns, after=False)


def _at(series: list[tuple[int, int]], moment_ns: int, *, after: bool) -> int:
    if after:
        return next((cpu for at, cpu in series if at >= moment_ns), series[-1][1])
    return next((cpu for at, cpu in reversed(series) if at <= moment_ns), 0)


class Watch(threading.Thread):
    """Looks every 20 ms at a process and all below it until `stop`."""

    def __init__(self, pid: int) -> None:
        super().__init__(name="watch", daemon=True)
        self._pid = pid
        self.ended_ns = 0
        self._ending = threading.Event()
        self.seen: dict[int, Seen] = {pid: Seen(SUPERVISOR)}
        self.most_bytes: dict[str, int] = {}
        """The most memory that the processes of a kind had at one moment, together."""

    def run(self) -> None:
        """Look until stopped."""
        looks = 0
        while not self._ending.wait(LOOK_S):
            if looks % SEARCH_EVERY == 0:
                self._search()
                self._weigh()
            for pid, seen in self.seen.items():
                try:
                    cpu_ns = process_cpu_ns(pid)
                except OSError:
                    continue  # it has ended: its last figure stands
                seen.cpu.append((time.monotonic_ns(), cpu_ns))
            looks += 1

    def _weigh(self) -> None:
        now: dict[str, int] = {}
        for pid, seen in self.seen.items():
            try:
                now[seen.kind] = now.get(seen.kind, 0) + share_bytes(pid)
            except OSError:
                continue
        for kind, size in now.items():
            self.most_bytes[kind] = max(self.most_bytes.get(kind, 0), size)

    def _search(self) -> None:
        for pid in descendants(self._pid):
            if kind := kind_of(pid):
                self.seen.setdefault(pid, Seen(kind)).kind = kind  # one that was just forked is renamed yet

    def stop(self) -> None:
        """End looking."""
        self.ended_ns = time.monotonic_ns()
        self._ending.set()
        self.join()

    def cpu_s(self, begin_ns: int, end_ns: int) -> dict[str, float]:
        """CPU seconds by kind between two moments of the monotonic clock."""
        totals: dict[str, float] = {}
        for seen in self.seen.values():
            if seen.cpu:
                totals[seen.kind] = totals.get(seen.kind, 0.0) + seen.used_ns(begin_ns, end_ns) / 1e9
        return totals


def process_cpu_ns(pid: int) -> int:
    """CPU of a whole process, ended threads included: Linux has a clock for every process. Raises OSError."""
    return time.clock_gettime_ns((~pid << 3) | 2)


def unique_bytes(pid: int) -> int:
    """Memory that only this process has: what would come free if it ended. Raises OSError."""
    return _mapped_bytes(pid, "Private_")


def share_bytes(pid: int) -> int:
    """Its share of memory: a page that n processes have (a server and its child that writes) counts 1/n."""
    return _mapped_bytes(pid, "Pss:")


def _mapped_bytes(pid: int, name: str) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith(name))


def children_cpu_s() -> float:
    """CPU of all processes that this one has waited for, with all below them."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def children_of(parent: int) -> list[int]:
    """Return the processes directly below this one."""
    found: list[int] = []
    for task in Path(f"/proc/{parent}/task").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found += map(int, (task / "children").read_text().split())
    return found


def descendants(parent: int) -> list[int]:
    """Return the processes below this one, at any depth."""
    return [one for child in children_of(parent) for one in (child, *descendants(child))]


def kind_of(pid: int) -> str:
    """Report what a process of a recorder is, "" for what is none of ours."""
    try:
        line = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""
    return next((kind for part, kind in KINDS.items() if part in line), "")

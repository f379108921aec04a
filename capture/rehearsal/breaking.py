"""Does one fault to a running recorder and tells what was done, to whom and when."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from capture.rehearsal.injected import CLOCK, DISK, plant, put
from capture.rehearsal.scenarios import RECORDING, STREAMS, Scenario
from capture.rehearsal.small_disks import fill, seen_by
from sensors.host_clock import host_ns
from storage.copies.target import MARKER

QUEUE, MOVER = "valkey-server", "storage.move.mover_process"
STEP_BACK_NS = -3600 * 10**9
SLOW_S = 0.25
"""What each write and each sync takes on the slow disk."""
KILLS = 3
MARKER_LIMIT_S = 20.0
STRAY = "stray"
"""What was written below the mount point of a store that was not mounted, or into another store."""
MOVED = "moved"
"""The name of a recording's folder while it has not its own."""

Fault = dict[str, Any]
"""{"kind", "target", "start_host_ns", "end_host_ns"}"""


@dataclass(frozen=True)
class Victims:
    """The processes of a recorder, by what they do."""

    supervisor: int
    producers: list[int]
    drainers: list[int]
    queue: list[int]
    mover: list[int]

    def of(self, name: str) -> list[int]:
        """Return the processes of one name."""
        return {
            "supervisor": [self.supervisor],
            "producer": self.producers,
            "drainer": self.drainers,
            "queue": self.queue,
            "mover": self.mover,
        }[name]

    def everyone(self) -> list[tuple[str, int]]:
        """Return (name, process) of all, the supervisor first, so that it cannot start anyone anew."""
        names = ("supervisor", "producer", "drainer", "queue", "mover")
        return [(name, pid) for name in names for pid in self.of(name)]


def victims_of(state: dict[str, Any]) -> Victims:
    """Find the processes of a recorder from what it says of itself, and from the system."""
    children = children_of(int(state["pid"]))

    def named(word: str) -> list[int]:
        return sorted(pid for name, pid in state["processes"].items() if name.startswith(word))

    def running(word: str) -> list[int]:
        return sorted(pid for pid, line in children.items() if word in line)

    return Victims(int(state["pid"]), named("producer"), named("drainer"), running(QUEUE), running(MOVER))


def children_of(pid: int) -> dict[int, str]:
    """Return command lines of the children of a process."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError):
            if int((folder / "stat").read_text().rpartition(")")[2].split()[1]) == pid:
                found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    return found


class Breaker:
    """Breaks things for one scenario whose files lie in `folder`."""

    def __init__(self, scenario: Scenario, folder: Path) -> None:
        """Do nothing yet."""
        self._scenario = scenario
        self._folder = folder
        self._random = random.Random(scenario.seed)

    def break_it(self, state: dict[str, Any], look: Any) -> list[Fault]:
        """Do the scenario's fault; `look()` gives the newest state of the recorder."""
        name = self._scenario.kind.name
        verb, _, target = name.partition("_")
        if name == "kill_any":
            return self._kill_some(look)
        if name in ("kill_recorder", "relative_paths"):
            return self._kill_all(victims_of(state))
        if name == "step_clock":
            return self._step_clock(victims_of(state))
        if name == "long_stop":
            verb, target = "stop", self._scenario.target
            if target == "all":
                return [self._suspend(state)]
        if verb in ("kill", "stop"):
            victim = self._random.choice(victims_of(state).of(target))
            return [self._signal(verb, target, [victim])]
        return [self._other(name, state)]

    def _signal(self, verb: str, target: str, pids: list[int]) -> Fault:
        start_ns = host_ns()
        if verb == "kill":
            _send(pids, signal.SIGKILL)
        else:
            _freeze(pids, self._scenario.lasts_s)
        return _fault(f"{verb}_{target}", target, start_ns)

    def _other(self, name: str, state: dict[str, Any]) -> Fault:
        start_ns = host_ns()
        if name == "suspend":
            return self._suspend(state)
        if name == "disk_full":
            fill(seen_by(int(state["pid"]), self._folder / "disk"))
        elif name == "nas_full":
            fill(seen_by(int(state["pid"]), self._folder / "nas"))
        elif name == "nas_gone":
            start_ns = self._take_store_away()
        elif name == "store_swapped":
            start_ns = self._swap_store()
        elif name == "folder_moved":
            self._move_folder()
        elif name == "drainer_bug":
            plant(self._folder / "injected", self._random.choice(STREAMS))
        elif name == "slow_disk":
            put(self._folder / "injected", DISK, SLOW_S)
            time.sleep(self._scenario.lasts_s)
            put(self._folder / "injected", DISK, 0.0)
        else:
            raise ValueError(name)
        return _fault(name, self._scenario.target, start_ns)

    def _suspend(self, state: dict[str, Any]) -> Fault:
        """Stop every process of the recorder, as a computer that falls asleep does."""
        supervisor, start_ns = int(state["pid"]), host_ns()
        _freeze([supervisor, *children_of(supervisor)], self._scenario.lasts_s)
        return _fault("suspend", "all", start_ns)

    def _move_folder(self) -> None:
        """Give the recording's folder another name; half of the times it gets its own back while recording."""
        place, away = self._folder / "data" / RECORDING, self._folder / "data" / MOVED
        place.rename(away)
        time.sleep(self._scenario.lasts_s)
        if self._random.random() < 0.5:
            give_back(away, place)

    def _swap_store(self) -> int:
        """Put another store where the first was, for a while; return since when."""
        store, away, other = self._folder / "nas", self._folder / "nas.away", self._folder / STRAY
        _wait_for(store / MARKER)
        other.mkdir()
        (other / MARKER).write_text(json.dumps({"schema": "target/1", "target": str(uuid.uuid4())}) + "\n")
        start_ns = host_ns()
        store.rename(away)
        other.rename(store)
        time.sleep(self._scenario.lasts_s)
        store.rename(other)
        (other / MARKER).unlink()
        away.rename(store)
        return start_ns

    def _take_store_away(self) -> int:
        """Let the store vanish: its folder is empty as an unmounted one, or not there at all; return since when."""
        store, away = self._folder / "nas", self._folder / "nas.away"
        _wait_for(store / MARKER)  # a store that was never there before cannot be told from an empty folder
        start_ns = host_ns()
        store.rename(away)
        leaves_mount_point = self._random.random() < 0.5
        if leaves_mount_point:
            store.mkdir()
        time.sleep(self._scenario.lasts_s)
        if leaves_mount_point:
            store.rename(
                self._folder / STRAY
            )  # what anybody wrote below the missing mount is looked for there
        away.rename(store)
        return start_ns

    def _step_clock(self, victims: Victims) -> list[Fault]:
        """Set the wall clock back by an hour, and let a producer be started anew after it."""
        start_ns = host_ns()
        put(self._folder / "injected", CLOCK, STEP_BACK_NS)
        stepped = _fault("step_clock", "clock", start_ns)
        return [stepped, self._signal("kill", "producer", victims.producers)]

    def _kill_all(self, victims: Victims) -> list[Fault]:
        """Kill the recorder and everything it has started, as the kernel does when memory runs out."""
        everyone = victims.everyone()
        start_ns = host_ns()
        _send([pid for _, pid in everyone], signal.SIGKILL)
        return [_fault(f"kill_{name}", name, start_ns) for name, _ in everyone]

    def _kill_some(self, look: Any) -> list[Fault]:
        """Kill processes of all kinds but the supervisor, one after the other, at random moments."""
        faults = []
        for _ in range(KILLS):
            found = [(name, pid) for name, pid in victims_of(look()).everyone() if name != "supervisor"]
            name, pid = self._random.choice(found)
            faults.append(self._signal("kill", name, [pid]))
            time.sleep(self._random.uniform(0.0, self._scenario.lasts_s / KILLS))
        return faults


def give_back(away: Path, place: Path) -> None:
    """Give a folder its name back. Raises FileExistsError where somebody has made another one of that name."""
    if place.exists():
        raise FileExistsError(f"{place} was made anew while {away} was there")
    away.rename(place)


def _wait_for(path: Path) -> None:
    end_s = time.monotonic() + MARKER_LIMIT_S
    while not path.exists():
        if time.monotonic() > end_s:
            raise FileNotFoundError(path)
        time.sleep(0.02)


def _fault(kind: str, target: str, start_ns: int) -> Fault:
    return {"kind": kind, "target": target, "start_host_ns": start_ns, "end_host_ns": host_ns()}


def _send(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):  # it was about to go by itself
            os.kill(pid, number)


def _freeze(pids: list[int], seconds: float) -> None:
    _send(pids, signal.SIGSTOP)
    try:
        time.sleep(seconds)
    finally:
        _send(reversed(pids), signal.SIGCONT)

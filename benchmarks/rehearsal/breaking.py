"""Does one fault to a running recorder; returns what was done, to whom and when."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import time
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kitchensync.sensors.host_clock import host_ns
from kitchensync.storage.copies.target import MARKER
from rehearsal.injected import BUG, CLOCK, DISK, put
from rehearsal.scenarios import RECORDING, STREAMS, Scenario
from rehearsal.small_disks import fill, seen_by
from rehearsal.stage import Recorder

QUEUE, MOVER = "valkey-server", "kitchensync.storage.move.mover_process"
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

PARTS = ("supervisor", "producer", "drainer", "queue", "mover")
"""What a recorder consists of; the supervisor is first, so that it cannot start anyone anew who is killed."""


def victims_of(state: dict[str, Any]) -> dict[str, list[int]]:
    """Return the processes of a recorder by their part, from its state and from the system."""
    supervisor = int(state["pid"])
    children = children_of(supervisor)

    def named(word: str) -> list[int]:
        return sorted(pid for name, pid in state["processes"].items() if name.startswith(word))

    def running(word: str) -> list[int]:
        return sorted(pid for pid, line in children.items() if word in line)

    found = [supervisor], named("producer"), named("drainer"), running(QUEUE), running(MOVER)
    return dict(zip(PARTS, found, strict=True))


def each_of(victims: dict[str, list[int]], parts: Iterable[str] = PARTS) -> list[tuple[str, int]]:
    """Return (part, process) of every process of these parts."""
    return [(part, pid) for part in parts for pid in victims[part]]


def children_of(pid: int) -> dict[int, str]:
    """Return command lines of the children of a process."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError):
            if int((folder / "stat").read_text().rpartition(")")[2].split()[1]) == pid:
                found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    return found


class Breaker:
    """Does the fault of one scenario whose files lie in `folder`."""

    def __init__(self, scenario: Scenario, folder: Path, recorder: Recorder) -> None:
        """Do nothing yet."""
        self._scenario = scenario
        self._folder = folder
        self._recorder = recorder
        self._store = folder / "nas"
        self._random = random.Random(scenario.seed)

    def break_it(self) -> list[Fault]:
        """Do the scenario's fault; return what was done, to whom and when."""
        name = self._scenario.kind.name
        several = {
            "kill_any": self._kill_some,
            "kill_recorder": self._kill_all,
            "relative_paths": self._kill_all,
            "step_clock": self._step_clock,
        }
        if name in several:
            return several[name]()
        if name == "suspend" or (name == "long_stop" and self._scenario.target == "all"):
            return [self._suspend()]
        if name == "long_stop":
            return [self._signal_one("stop", self._scenario.target)]
        verb, _, part = name.partition("_")
        return [self._signal_one(verb, part) if part in PARTS else self._other(name)]

    def _victims(self) -> dict[str, list[int]]:
        return victims_of(self._recorder.state())

    def _signal_one(self, verb: str, part: str) -> Fault:
        return self._signal(verb, part, self._random.choice(self._victims()[part]))

    def _signal(self, verb: str, part: str, pid: int) -> Fault:
        start_ns = host_ns()
        if verb == "kill":
            _send([pid], signal.SIGKILL)
        else:
            _freeze([pid], self._scenario.lasts_s)
        return _fault(f"{verb}_{part}", part, start_ns)

    def _suspend(self) -> Fault:
        """Stop every process of the recorder, as a computer that falls asleep does."""
        supervisor = int(self._recorder.state()["pid"])
        start_ns = host_ns()
        _freeze([supervisor, *children_of(supervisor)], self._scenario.lasts_s)
        return _fault("suspend", "all", start_ns)

    def _step_clock(self) -> list[Fault]:
        """Set the wall clock back by an hour, and let a producer be started anew after it."""
        producer = self._random.choice(self._victims()["producer"])
        start_ns = host_ns()
        put(self._folder / "injected", CLOCK, STEP_BACK_NS)
        return [_fault("step_clock", "clock", start_ns), self._signal("kill", "producer", producer)]

    def _kill_all(self) -> list[Fault]:
        """Kill the recorder and everything it has started, as the kernel does when memory runs out."""
        everyone = each_of(self._victims())
        start_ns = host_ns()
        _send([pid for _, pid in everyone], signal.SIGKILL)
        return [_fault(f"kill_{part}", part, start_ns) for part, _ in everyone]

    def _kill_some(self) -> list[Fault]:
        """Kill processes of all parts but the supervisor, one after the other, at random moments."""
        faults = []
        for _ in range(KILLS):
            faults.append(self._signal("kill", *self._random.choice(each_of(self._victims(), PARTS[1:]))))
            time.sleep(self._random.uniform(0.0, self._scenario.lasts_s / KILLS))
        return faults

    def _other(self, name: str) -> Fault:
        if name in ("nas_gone", "store_swapped"):
            # A store that was never there before cannot be known from an empty folder.
            _wait_for(self._store / MARKER)
        start_ns = host_ns()
        {
            "disk_full": lambda: self._fill("disk"),
            "nas_full": lambda: self._fill("nas"),
            "nas_gone": self._remove_store,
            "store_swapped": self._swap_store,
            "folder_moved": self._move_folder,
            "drainer_bug": lambda: put(self._folder / "injected", BUG, self._random.choice(STREAMS)),
            "slow_disk": self._slow_disk,
        }[name]()
        return _fault(name, self._scenario.target, start_ns)

    def _wait(self) -> None:
        time.sleep(self._scenario.lasts_s)

    def _fill(self, disk: str) -> None:
        fill(seen_by(self._recorder.state()["pid"], self._folder / disk))

    def _slow_disk(self) -> None:
        put(self._folder / "injected", DISK, SLOW_S)
        self._wait()
        put(self._folder / "injected", DISK, 0.0)

    def _move_folder(self) -> None:
        """Give the recording's folder another name; half of the times it gets its own back while recording."""
        place, away = self._folder / "data" / RECORDING, self._folder / "data" / MOVED
        place.rename(away)
        self._wait()
        if self._random.random() < 0.5:
            give_back(away, place)

    def _swap_store(self) -> None:
        """Put another store where the first was, for a while."""
        other = self._folder / STRAY
        other.mkdir()
        (other / MARKER).write_text(json.dumps({"schema": "target/1", "target": str(uuid.uuid4())}) + "\n")
        self._without_store(other)
        (other / MARKER).unlink()

    def _remove_store(self) -> None:
        """Let the store vanish: its folder is empty as an unmounted one, or not there at all."""
        empty = None
        if self._random.random() < 0.5:
            empty = self._folder / STRAY
            empty.mkdir()
        self._without_store(empty)

    def _without_store(self, instead: Path | None) -> None:
        """Put another folder where the store was, for a while; it then holds what was written there."""
        away = self._folder / "nas.away"
        self._store.rename(away)
        if instead:
            instead.rename(self._store)
        self._wait()
        if instead:
            self._store.rename(instead)
        away.rename(self._store)


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

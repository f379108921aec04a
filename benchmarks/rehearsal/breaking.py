"""Injects one fault into a running recorder; returns what was done, to what and when."""

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from kitchensync.shell.host_clock import host_ns
from kitchensync.storage.copies.target import MARKER, Target
from rehearsal.injected import BUG, CLOCK, DISK, put
from rehearsal.scenarios import RECORDING, STREAMS, Scenario
from rehearsal.small_disks import fill
from rehearsal.stage import Recorder

MOVER = "kitchensync.storage.move.mover_process"
STEP_BACK_NS = -3600 * 10**9
SLOW_S = 0.25  # each write and each sync on the slow disk
KILLS = 3
MARKER_LIMIT_S = 20.0
STRAY = "stray"  # folder of what stood in place of the store: nothing may be written there
MOVED = "moved"  # name of a recording's folder while it is moved away

Fault = dict[str, Any]
"""{"kind", "target", "start_host_ns", "end_host_ns"}"""
PARTS = ("supervisor", "producer", "drainer", "queue", "mover")
"""Parts of a recorder; the supervisor is killed first: it cannot start the others again."""


def victims_of(state: dict[str, Any], parts: Iterable[str] = PARTS) -> list[tuple[str, int]]:
    """Return (part, process) of every process of these parts of a recorder."""
    supervisor = int(state["pid"])
    pids = {"supervisor": supervisor, **state["processes"]}
    pids |= {f"mover {pid}": pid for pid, command in children_of(supervisor).items() if MOVER in command}
    return [(part, pids[name]) for part in parts for name in sorted(pids) if name.startswith(part)]


def children_of(pid: int) -> dict[int, str]:
    """Return the command lines of the children of a process."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError):
            if int((folder / "stat").read_text().rpartition(")")[2].split()[1]) == pid:
                found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    return found


class Breaker:
    """Injects the fault of one scenario into its recorder and the files in its folder."""

    def __init__(self, scenario: Scenario, folder: Path, recorder: Recorder) -> None:
        self._scenario, self._folder, self._recorder = scenario, folder, recorder
        self._random = random.Random(scenario.seed)

    def break_it(self) -> list[Fault]:
        """Inject the fault; return what was done, to what and when. Raises FileNotFoundError for no store."""
        name, target = self._scenario.kind.name, self._scenario.target
        if name == "long_stop":
            name = "suspend" if target == "all" else f"stop_{target}"
        verb, _, part = name.partition("_")
        if part in PARTS:
            return [self._signal(verb, [part])]
        if name in ("kill_recorder", "relative_paths"):
            return self._kill_all()
        if name == "kill_any":
            return self._kill_some()
        if name == "step_clock":
            return [self._change("step_clock"), self._signal("kill", ["producer"])]
        return [self._change(name)]

    def _signal(self, verb: str, parts: Iterable[str]) -> Fault:
        """Kill or stop a random process of these parts."""
        part, pid = self._random.choice(victims_of(self._recorder.state(), parts))
        act = partial(_send, signal.SIGKILL) if verb == "kill" else self._freeze
        return _done(f"{verb}_{part}", part, lambda: act([pid]))

    def _kill_all(self) -> list[Fault]:
        """Kill the recorder with all its processes, as the kernel does when memory runs out."""
        victims = victims_of(self._recorder.state())
        done = _done("", "", lambda: _send(signal.SIGKILL, [pid for _, pid in victims]))
        return [done | {"kind": f"kill_{part}", "target": part} for part, _ in victims]

    def _kill_some(self) -> list[Fault]:
        """Kill processes of all parts but the supervisor, at random moments."""
        faults = []
        for _ in range(KILLS):
            faults.append(self._signal("kill", PARTS[1:]))
            time.sleep(self._random.uniform(0.0, self._scenario.lasts_s / KILLS))
        return faults

    def _change(self, name: str) -> Fault:
        """Change the surroundings of the recorder."""
        pid, injected = int(self._recorder.state()["pid"]), self._folder / "injected"
        if name in ("nas_gone", "store_swapped"):
            _wait_for(self._folder / "nas" / MARKER)  # without it a store is like an empty folder
        root = Path(f"/proc/{pid}/root{self._folder}")  # where the recorder sees its small disks
        changes: dict[str, Callable[[], object]] = {
            "disk_full": lambda: fill(root / "disk"),
            "drainer_bug": lambda: put(injected, BUG, self._random.choice(STREAMS)),
            "folder_moved": self._move_folder,
            "nas_full": lambda: fill(root / "nas"),
            "nas_gone": self._replace_store,
            "slow_disk": lambda: self._slow_disk(injected),
            "step_clock": lambda: put(injected, CLOCK, STEP_BACK_NS),
            "store_swapped": self._replace_store,
            "suspend": lambda: self._freeze([pid, *children_of(pid)]),
        }
        return _done(name, self._scenario.target, changes[name])

    def _freeze(self, pids: list[int]) -> None:
        _send(signal.SIGSTOP, pids)
        try:
            time.sleep(self._scenario.lasts_s)
        finally:
            _send(signal.SIGCONT, reversed(pids))

    def _slow_disk(self, injected: Path) -> None:
        put(injected, DISK, SLOW_S)
        time.sleep(self._scenario.lasts_s)
        put(injected, DISK, 0.0)

    def _move_folder(self) -> None:
        """Rename the recording's folder; half of the times it gets its name back while recording."""
        place, away = self._folder / "data" / RECORDING, self._folder / "data" / MOVED
        place.rename(away)
        time.sleep(self._scenario.lasts_s)
        if self._random.random() < 0.5:
            give_back(away, place)

    def _replace_store(self) -> None:
        """Put another store, an empty folder or nothing in place of the store, for a while."""
        store, away, stray = (self._folder / name for name in ("nas", "nas.away", STRAY))
        is_other_store = self._scenario.kind.name == "store_swapped"
        if is_other_store or self._random.random() < 0.5:
            stray.mkdir()
        if is_other_store:
            Target(stray)  # which writes its marker
        store.rename(away)
        if stray.exists():
            stray.rename(store)
        time.sleep(self._scenario.lasts_s)
        if store.exists():
            store.rename(stray)
        away.rename(store)
        if is_other_store:
            (stray / MARKER).unlink()


def give_back(away: Path, place: Path) -> None:
    """Give a folder its name back. Raises FileExistsError where another folder has got that name."""
    if place.exists():
        raise FileExistsError(f"{place} was made anew while {away} was there")
    away.rename(place)


def _wait_for(path: Path) -> None:
    end_s = time.monotonic() + MARKER_LIMIT_S
    while not path.exists():
        if time.monotonic() > end_s:
            raise FileNotFoundError(path)
        time.sleep(0.02)


def _done(kind: str, target: str, act: Callable[[], object]) -> Fault:
    start_ns = host_ns()
    act()
    return {"kind": kind, "target": target, "start_host_ns": start_ns, "end_host_ns": host_ns()}


def _send(number: int, pids: Iterable[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):  # it had just ended by itself
            os.kill(pid, number)

"""Plays one scenario: the fault at its moment in a real recording of the virtual kitchen, and what follows."""

from __future__ import annotations

import json
import shlex
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kitchensync.capture.served_kitchen import KITCHENSYNC, ServedKitchen, finish, simulator
from kitchensync.sensors.host_clock import host_ns
from rehearsal import hostile, injected
from rehearsal.breaking import MOVED, Breaker, Fault, give_back
from rehearsal.clustered import refused
from rehearsal.scenarios import RECORDING, Scenario
from rehearsal.small_disks import SMALL_DISK_MB, on_small_disk
from rehearsal.stage import Recorder, keep_facts, record_command, recorder

PRIVATE = 0o077
"""The umask of a careful person."""


def play(scenario: Scenario, folder: Path) -> None:
    """Play a scenario; leave `folder/{data/take, sim, scenario.json, record.json}`. Raises KitchenFailed."""
    folder.mkdir(parents=True)
    with simulator(folder, scenario.seed, scenario.world_s, scenario.simulator_options) as kitchen:
        environment = dict(kitchen.environment)
        if scenario.kind.injects:
            environment |= injected.prepare(folder / "injected")
        output, faults = _Play(scenario, folder, kitchen, environment).record()
    faults += _done_by_simulator(scenario, folder)
    keep_facts(folder, output, {**scenario.facts, "faults": faults})


@dataclass(frozen=True)
class _Play:
    scenario: Scenario
    folder: Path
    kitchen: ServedKitchen
    environment: dict[str, str]

    def record(self) -> tuple[str, list[Fault]]:
        """Record, break it, and do what an operator does then; return what `record` printed, and the faults."""
        kind, command = self.scenario.kind, self._command()
        if kind.name == "clustered_server":
            return refused(command, self.folder, self.environment, whole=self.scenario.seed % 2 == 0), []
        place: dict[str, Any] = {"cwd": self.folder, "umask": PRIVATE} if self._is_relative else {}
        with recorder(command, self.folder, self.environment, **place) as recording:
            faults = self._break(recording)
            output = recording.output()
        if kind.mounts:  # the filler lies there for as long as the recorder lives (`on_small_disk`)
            faults = _until_now(faults)
        if kind.recover:
            faults = self._recover(faults)
        if kind.store and not kind.mounts:
            finish(self._move, self.folder, self.environment)
        return output, faults

    @property
    def _is_relative(self) -> bool:
        return self.scenario.kind.name == "relative_paths"

    @property
    def _move(self) -> list[str]:
        return ["move", str(self.folder / "data" / RECORDING), "--to", str(self.folder / "nas"), "--keep"]

    def _command(self) -> list[str]:
        kind, data, store = self.scenario.kind, self.folder / "data", self.folder / "nas"
        options = ["--gopro", self.kitchen.gopro] if kind.camera else []
        if kind.store:
            store.mkdir()
            options += ["--nas", str(store)]
        if kind.mounts == "data":
            disk = self.folder / "disk"
            return _on_small_disk("data", self._record(disk, options), data, disk)
        if kind.mounts == "nas":
            move = shlex.join([KITCHENSYNC, *self._move, "--json"]) + " >&2"
            return _on_small_disk("nas", self._record(data, options), self.folder / "copies", store, move)
        if self._is_relative:
            real = self.folder / "disk of the kitchen"
            real.mkdir(mode=0o700)
            data.symlink_to(real.name)
            return self._record(data.name, options)
        return self._record(data, options)

    def _record(self, data: Path | str, options: list[str]) -> list[str]:
        return record_command(self.kitchen, data, self.scenario.record_s, *options)

    def _break(self, recording: Recorder) -> list[Fault]:
        """Wait for the moment and do it; return the faults as they were done."""
        kind = self.scenario.kind
        recording.wait_for_all()
        if kind.name == "nothing" or kind.in_simulator:
            return []
        time.sleep(self.scenario.at_s)
        if kind.hostile:
            hostile.attack(kind.hostile, self.folder, self.scenario.number, recording.endpoints()[0])
            return []
        return Breaker(self.scenario, self.folder, recording).break_it()

    def _recover(self, faults: list[Fault]) -> list[Fault]:
        """Mend what was broken, and let `recover` finish the recording; return the faults as they were then."""
        if any(fault["kind"].startswith("kill_") for fault in faults):
            faults = _with_producers(_until_now(faults))
        (self.folder / "injected" / injected.BUG).unlink(missing_ok=True)  # as an update of the software does
        moved = self.folder / "data" / MOVED
        if moved.exists():
            give_back(moved, moved.with_name(RECORDING))
        data, cwd = (
            ("../data", self.folder / "sim") if self._is_relative else (str(self.folder / "data"), None)
        )
        finish(["recover", "--data", data], self.folder, self.environment, cwd=cwd)
        return faults


def _on_small_disk(kind: str, command: list[str], place: Path, disk: Path, after: str = "") -> list[str]:
    place.mkdir()
    disk.mkdir(exist_ok=True)
    return on_small_disk(command, place, disk, SMALL_DISK_MB[kind], after)


def _until_now(faults: list[Fault]) -> list[Fault]:
    """Let faults last that nobody has undone."""
    now_ns = host_ns()
    return [fault | {"end_host_ns": now_ns} for fault in faults]


def _with_producers(faults: list[Fault]) -> list[Fault]:
    """Add that the producers ended too, where what was killed ended them."""
    if any(fault["kind"] == "kill_producer" for fault in faults):
        return faults
    return [*faults, faults[0] | {"kind": "stop_producer", "target": "producer"}]


def _done_by_simulator(scenario: Scenario, folder: Path) -> list[Fault]:
    """Return the faults of the virtual kitchen's own with the moments in its truth."""
    if not scenario.kind.in_simulator:
        return []
    truth = json.loads((folder / "sim" / "truth.json").read_text())
    restarts = scenario.kind.name == "restart_app"  # which cuts every socket
    return [
        {
            "kind": "cut_socket" if restarts else scenario.kind.name,
            "target": ",".join(fault["streams"]) or "hololens",
            "start_host_ns": fault["start_host_ns"],
            "end_host_ns": fault["end_host_ns"],
        }
        for fault in truth["faults"]
    ]

"""Plays one scenario: its fault in a real recording of the virtual kitchen, and what an operator does after it."""

import contextlib
import json
import shlex
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

from kitchensync.capture import served_kitchen as serving
from kitchensync.capture.queue.queue_connection import wait_until_ready
from kitchensync.capture.queue.server import queue_binary
from kitchensync.shell.host_clock import host_ns
from rehearsal import injected
from rehearsal.breaking import MOVED, Breaker, Fault, give_back
from rehearsal.scenarios import RECORDING, REFUSED, Scenario
from rehearsal.small_disks import on_small_disk
from rehearsal.stage import Recorder, keep_facts, record_command, recorder

DATA_MB, STORE_MB = 640, 24
PORT, SLOTS = 6379, 16384  # of a clustered queue server
REFUSAL_LIMIT_S = 60.0


def play(scenario: Scenario, folder: Path) -> None:
    """Play a scenario; leave `folder/{data/take, sim, scenario.json, record.json}`. Raises KitchenFailed."""
    folder.mkdir(parents=True)
    with serving.simulator(folder, scenario.seed, scenario.seconds, scenario.simulator_options) as kitchen:
        environment = dict(kitchen.environment)
        if scenario.kind.injects:
            environment |= injected.prepare(folder / "injected")
        output, faults = _Play(scenario, folder, kitchen, environment).record()
    if scenario.kind.in_simulator:
        truth = json.loads((folder / "sim" / "truth.json").read_text())
        faults = [
            {**fault, "kind": scenario.kind.name, "target": ",".join(fault["streams"]) or "hololens"}
            for fault in truth["faults"]
        ]
    keep_facts(folder, output, {**scenario.facts, "faults": faults})


@dataclass(frozen=True)
class _Play:
    scenario: Scenario
    folder: Path
    kitchen: serving.ServedKitchen
    environment: dict[str, str]

    def record(self) -> tuple[str, list[Fault]]:
        """Record, inject the fault, repair; return the output of `record` and the faults."""
        kind, command = self.scenario.kind, self._command()
        if kind.name == "clustered_server":
            return self._refuse(command), []
        place: dict[str, Any] = {"cwd": self.folder, "umask": 0o077} if kind.name == "relative_paths" else {}
        with recorder(command, self.folder, self.environment, **place) as recording:
            faults = self._break(recording)
            output = recording.output()
        if kind.mounts or kind.recover:  # it lasted until the recorder had ended
            end_ns = host_ns()
            faults = [fault | {"end_host_ns": end_ns} for fault in faults]
        if kind.recover:
            self._recover()
        if kind.store and not kind.mounts:
            serving.finish(self._move(), self.folder, self.environment)
        return output, faults

    def _command(self) -> list[str]:
        """Make the folders of a recording; return the command that records there."""
        kind, data, store = self.scenario.kind, self.folder / "data", self.folder / "nas"
        options = ["--gopro", self.kitchen.gopro] if kind.name == "camera_dies" else []
        if kind.store:
            store.mkdir()
            options += ["--nas", str(store)]
        place = self.folder / "disk" if kind.mounts == "data" else data
        if kind.name == "relative_paths":
            (self.folder / "disk of the kitchen").mkdir(mode=0o700)
            data.symlink_to("disk of the kitchen")
            place = Path("data")
        command = record_command(self.kitchen, place, self.scenario.record_s, *options)
        if kind.mounts == "data":
            return on_small_disk(command, data, place, DATA_MB)
        if kind.mounts == "nas":
            move = shlex.join([serving.KITCHENSYNC, *self._move(), "--json"]) + " >&2"
            return on_small_disk(command, self.folder / "copies", store, STORE_MB, move)
        return command

    def _move(self) -> list[str]:
        return ["move", str(self.folder / "data" / RECORDING), "--to", str(self.folder / "nas"), "--keep"]

    def _break(self, recording: Recorder) -> list[Fault]:
        """Inject the fault at its moment; return what was done."""
        kind = self.scenario.kind
        recording.wait_for_all()
        if kind.name == "nothing" or kind.in_simulator:
            return []
        time.sleep(self.scenario.at_s)
        return Breaker(self.scenario, self.folder, recording).break_it()

    def _recover(self) -> None:
        """Repair what was broken, and let `recover` finish the recording."""
        (self.folder / "injected" / injected.BUG).unlink(missing_ok=True)  # as an update of the software does
        data = self.folder / "data"
        if (data / MOVED).exists():
            give_back(data / MOVED, data / RECORDING)
        is_relative = self.scenario.kind.name == "relative_paths"
        place, cwd = ("../data", self.folder / "sim") if is_relative else (str(data), None)
        serving.finish(["recover", "--data", place], self.folder, self.environment, cwd=cwd)

    def _refuse(self, command: list[str]) -> str:
        """Try to record through a clustered server; keep what was said and left; return the output."""
        folder, slots = self.folder, SLOTS if self.scenario.seed % 2 == 0 else SLOTS // 2
        with _clustered_server(folder / "queue", slots) as (url, client):
            command, environment = [*command, "--redis", url], self.environment
            done = serving.run(command, folder, "record", environment=environment, limit_s=REFUSAL_LIMIT_S)
            left = [f"the key {key!r}" for key in client.scan_iter()]
        left += [str(path.relative_to(folder)) for path in sorted((folder / "data").rglob("*"))]
        refusal = {"exit": done.returncode, "stdout": done.stdout, "stderr": done.stderr, "left": left}
        (folder / REFUSED).write_text(json.dumps(refusal, indent=1))
        return done.stdout


@contextlib.contextmanager
def _clustered_server(folder: Path, slots: int) -> Iterator[tuple[str, redis.Redis]]:
    """Run a queue server that is a cluster of its own; without all 16,384 slots the cluster is down."""
    folder.mkdir()
    host = serving.free_host()
    command = [str(queue_binary()), "--bind", host, "--port", str(PORT), "--cluster-enabled", "yes"]
    command += ["--dir", str(folder), "--save", "", "--logfile", str(folder / "queue.log")]
    with serving.process(command, folder, "server"), redis.Redis(host=host, port=PORT) as client:
        wait_until_ready(client, host)
        client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, slots - 1)
        time.sleep(1.0)  # a cluster is up some moments after its last slot has an owner
        yield f"redis://{host}:{PORT}", client

"""Plays one scenario: virtual kitchen and recorder as real processes, the fault at its moment, and what follows."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from capture.rehearsal import hostile, injected
from capture.rehearsal.breaking import MOVED, Breaker, Fault, give_back
from capture.rehearsal.clustered import refused
from capture.rehearsal.processes import KITCHENSYNC, RehearsalFailed, free_host, process
from capture.rehearsal.scenarios import CHUNK_S, RECORDING, Scenario
from capture.rehearsal.small_disks import SMALL_DISK_MB, on_small_disk
from capture.session.control import ask
from sensors.host_clock import host_ns

START_LIMIT_S = 60.0
END_LIMIT_S = 240.0
PRIVATE = 0o077
"""The umask of a careful person."""


@dataclass(frozen=True)
class ServedKitchen:
    """A virtual kitchen that serves."""

    process: subprocess.Popen[str]
    host: str
    gopro_port: int


@dataclass(frozen=True)
class Stage:
    """Where a scenario is played."""

    scenario: Scenario
    folder: Path
    kitchen: ServedKitchen
    runtime: Path
    environment: dict[str, str]


def play(scenario: Scenario, folder: Path) -> None:
    """Play a scenario; leave `folder/{data/take, sim, scenario.json, record.json}`. Raises RehearsalFailed."""
    folder.mkdir(parents=True)
    with (
        tempfile.TemporaryDirectory(prefix="ks") as runtime,
        simulator(folder, scenario.seed, scenario.world_s, scenario.simulator_options) as kitchen,
    ):
        environment = {"XDG_RUNTIME_DIR": runtime}
        if scenario.kind.injects:
            environment |= injected.prepare(folder / "injected")
        stage = Stage(scenario, folder, kitchen, Path(runtime), environment)
        output, faults = _record_and_break(stage)
        end_simulator(kitchen, scenario.name)
    (folder / "record.json").write_text(output)
    faults += _told_by_simulator(scenario, folder)
    facts = {"recording": RECORDING, **scenario.facts, "faults": faults}
    (folder / "scenario.json").write_text(json.dumps(facts, indent=1))


def _record_and_break(stage: Stage) -> tuple[str, list[Fault]]:
    """Record, break it, and do what an operator does after it; return what `record` printed, and the faults."""
    scenario, folder, kind = stage.scenario, stage.folder, stage.scenario.kind
    command = _record(stage)
    if kind.name == "clustered_server":
        facts = refused(command, folder, stage.environment, whole=scenario.seed % 2 == 0)
        return str(facts["stdout"]), []
    odd = kind.name == "relative_paths"
    place = {"cwd": folder, "umask": PRIVATE} if odd else {}
    with process(command, folder, "record", stage.environment, **place) as recorder:  # type: ignore[arg-type]
        faults = _break(stage, recorder)
        output = _output(recorder, scenario)
    if kind.mounts:
        # The filler lies there for as long as the recorder lives (`on_small_disk`).
        faults = _until_now(faults)
    if kind.recover:
        faults = _recover(stage, faults)
    if kind.store and not kind.mounts:
        finish(_move(folder), folder, stage.environment, scenario.name)
    return output, faults


def _recover(stage: Stage, faults: list[Fault]) -> list[Fault]:
    """Mend what was broken, and let the next command take up what waits; return the faults as they were then."""
    folder, kind = stage.folder, stage.scenario.kind
    if any(fault["kind"].startswith("kill_") for fault in faults):
        faults = _with_producers(_until_now(faults))
    if kind.name == "drainer_bug":
        injected.mend(folder / "injected")
    if (folder / "data" / MOVED).exists():
        give_back(folder / "data" / MOVED, folder / "data" / RECORDING)
    odd = kind.name == "relative_paths"
    data, cwd = (os.path.join("..", "data"), folder / "sim") if odd else (str(folder / "data"), None)
    finish(["recover", "--data", data], folder, stage.environment, stage.scenario.name, cwd=cwd)
    return faults


def _record(stage: Stage) -> list[str]:
    """Return the command of the recorder, on a small disk or with one where the scenario wants it."""
    scenario, folder, kind = stage.scenario, stage.folder, stage.scenario.kind
    data, store = folder / "data", folder / "nas"
    disk = folder / "disk" if kind.mounts == "data" else data
    take = [KITCHENSYNC, "record", RECORDING, "--data", str(disk), "--hololens", stage.kitchen.host, "--json"]
    take += ["--seconds", f"{scenario.record_s:g}", "--chunk-seconds", f"{CHUNK_S:g}"]
    if kind.name == "relative_paths":
        real = folder / "disk of the kitchen"
        real.mkdir(mode=0o700)
        data.symlink_to(real.name)
        take[take.index(str(disk))] = data.name
    if kind.camera:
        take += ["--gopro", f"http://{stage.kitchen.host}:{stage.kitchen.gopro_port}"]
    if kind.store:
        store.mkdir()
        take += ["--nas", str(store)]
    if kind.mounts == "data":
        disk.mkdir()
        data.mkdir()
        return on_small_disk(take, data, disk, SMALL_DISK_MB["data"], "")
    if kind.mounts == "nas":
        copies = folder / "copies"
        copies.mkdir()
        after = shlex.join([KITCHENSYNC, *_move(folder), "--json"]) + " >&2"
        return on_small_disk(take, copies, store, SMALL_DISK_MB["nas"], after)
    return take


def _move(folder: Path) -> list[str]:
    return ["move", str(folder / "data" / RECORDING), "--to", str(folder / "nas"), "--keep"]


@contextlib.contextmanager
def simulator(folder: Path, seed: int, seconds: float, options: list[str]) -> Iterator[ServedKitchen]:
    """Serve the virtual kitchen; its truth goes to `folder/sim`. Raises RehearsalFailed."""
    host = free_host()
    command = [KITCHENSYNC, "simulate", "--seed", str(seed), "--seconds", f"{seconds:g}"]
    command += ["--hololens-host", host, "--gopro-host", host, "--gopro-port", "0"]
    command += ["--out", str(folder / "sim"), *options]
    with process(command, folder, "simulate", {}) as started:
        port = next(
            (line.partition("=")[2] for line in started.stdout or () if line.startswith("ready ")), ""
        )
        if not port:
            raise RehearsalFailed(folder.name, "the virtual kitchen did not get ready")
        yield ServedKitchen(started, host, int(port))


def _until_now(faults: list[Fault]) -> list[Fault]:
    """Let faults last that nobody has taken back."""
    now_ns = host_ns()
    return [fault | {"end_host_ns": now_ns} for fault in faults]


def _with_producers(faults: list[Fault]) -> list[Fault]:
    """Say that the producers went too, where what was killed took them with it."""
    if any(fault["kind"] == "kill_producer" for fault in faults):
        return faults
    return [*faults, faults[0] | {"kind": "stop_producer", "target": "producer"}]


def end_simulator(kitchen: ServedKitchen, name: str) -> None:
    """End it, now that nobody records it any more; it writes its truth first. Raises RehearsalFailed."""
    kitchen.process.terminate()
    try:
        code = kitchen.process.wait(timeout=END_LIMIT_S)
    except subprocess.TimeoutExpired:
        code = None
    if code != 0:
        raise RehearsalFailed(name, f"the virtual kitchen ended with {code}")


def _output(recorder: subprocess.Popen[str], scenario: Scenario) -> str:
    try:
        return recorder.communicate(timeout=END_LIMIT_S)[0]
    except subprocess.TimeoutExpired as error:
        raise RehearsalFailed(scenario.name, f"the recorder did not end in {END_LIMIT_S:g} s") from error


def finish(
    words: list[str], folder: Path, environment: dict[str, str], name: str, *, cwd: Path | None = None
) -> None:
    """Run what an operator runs after it: `recover`, `move`. Raises RehearsalFailed."""
    done = subprocess.run(
        [KITCHENSYNC, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=END_LIMIT_S,
        env={**os.environ, **environment},
        cwd=cwd,
    )
    (folder / f"{words[0]}.log").write_text(done.stdout + done.stderr)
    if done.returncode:
        raise RehearsalFailed(name, f"`{words[0]}` failed: {done.stderr.strip()[-300:]}")


def _break(stage: Stage, recorder: subprocess.Popen[str]) -> list[Fault]:
    """Wait for the moment and do it; return the faults as they were done."""
    scenario = stage.scenario

    def look() -> dict[str, Any]:
        return state_of(scenario.name, recorder, stage.runtime)

    state = wait_for_all(scenario.name, look)
    if scenario.kind.name == "nothing" or scenario.kind.in_simulator:
        return []
    time.sleep(scenario.at_s)
    if scenario.kind.hostile:
        endpoint = next(iter(stage.runtime.glob("kitchensync/*/control")))
        hostile.attack(scenario.kind.hostile, stage.folder, scenario.number, stage.environment, endpoint)
        return []
    return Breaker(scenario, stage.folder).break_it(state, look)


def wait_for_all(name: str, look: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the state of a recorder that has every stream. Raises RehearsalFailed."""
    end_s = time.monotonic() + START_LIMIT_S
    while not _all_came(state := look()):
        if time.monotonic() > end_s:
            raise RehearsalFailed(name, "the recorder did not get every stream; see record.log")
        time.sleep(0.05)
    return state


def _all_came(state: dict[str, Any]) -> bool:
    return all(facts.get("first_host_ns") for facts in state["streams"].values())


def state_of(name: str, recorder: subprocess.Popen[str], runtime: Path) -> dict[str, Any]:
    """Ask the recorder how it is, as often as it takes. Raises RehearsalFailed when it does not say."""
    end_s = time.monotonic() + START_LIMIT_S
    while recorder.poll() is None and time.monotonic() < end_s:
        for endpoint in runtime.glob("kitchensync/*/control"):
            if state := ask(endpoint, "state"):
                return state
        time.sleep(0.05)
    raise RehearsalFailed(name, "the recorder does not answer; see record.log")


def _told_by_simulator(scenario: Scenario, folder: Path) -> list[Fault]:
    """Return the faults of the virtual kitchen's own with the moments that it gives them in its truth."""
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

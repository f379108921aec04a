"""Plays one scenario: virtual kitchen and recorder as real processes, the fault at its moment, and what follows."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from capture.control import ask
from capture.errors import CaptureError
from capture.rehearsal import injected
from capture.rehearsal.breaking import Breaker, Fault
from capture.rehearsal.mounts import SMALL_DISK_MB, on_small_disk
from capture.rehearsal.scenarios import CHUNK_S, SECONDS, Scenario
from sensors.host_clock import host_ns

START_LIMIT_S = 60.0
END_LIMIT_S = 150.0
LAST_WORD_S = 10.0
RECORDING = "take"
KITCHENSYNC = str(Path(sys.executable).parent / "kitchensync")


class RehearsalFailed(CaptureError):
    """The stage itself did not work: nothing can be said of the recorder."""

    def __init__(self, scenario: str, why: str) -> None:
        super().__init__(f"scenario {scenario}: {why}")


def play(scenario: Scenario, folder: Path) -> None:
    """Play a scenario; leave `folder/{data/take, sim, scenario.json, record.json}`. Raises RehearsalFailed."""
    folder.mkdir(parents=True)
    host = _free_host()
    with tempfile.TemporaryDirectory(prefix="ks") as runtime, _simulator(scenario, host, folder) as simulator:
        environment = {"XDG_RUNTIME_DIR": runtime}
        if scenario.kind.injects:
            environment |= injected.prepare(folder / "injected")
        with _process(_record(scenario, host, folder), folder, "record", environment) as recorder:
            faults = _break(scenario, recorder, Path(runtime), folder)
            output = _output(recorder, scenario)
        if scenario.kind.mounts:
            # The filler lies there for as long as the recorder lives (`on_small_disk`).
            faults = _until_now(faults)
        if scenario.kind.recover:
            faults = _with_producers(_until_now(faults))
            _finish(["recover", "--data", str(folder / "data")], folder, environment, scenario)
        if scenario.kind.store and not scenario.kind.mounts:
            _finish(_move(folder), folder, environment, scenario)
        _end_simulator(simulator, scenario)
    (folder / "record.json").write_text(output)
    faults += _told_by_simulator(scenario, folder)
    facts = {"recording": RECORDING, **scenario.facts, "faults": faults}
    (folder / "scenario.json").write_text(json.dumps(facts, indent=1))


def _record(scenario: Scenario, host: str, folder: Path) -> list[str]:
    """Return the command of the recorder, on a small disk or with one where the scenario wants it."""
    data, store, kind = folder / "data", folder / "nas", scenario.kind
    disk = folder / "disk" if kind.mounts == "data" else data
    take = [KITCHENSYNC, "record", RECORDING, "--data", str(disk), "--hololens", host, "--json"]
    take += ["--seconds", f"{SECONDS + 20:g}", "--chunk-seconds", f"{CHUNK_S:g}"]
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
def _simulator(scenario: Scenario, host: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    command = [KITCHENSYNC, "simulate", "--seed", str(scenario.seed), "--seconds", f"{SECONDS:g}"]
    command += ["--hololens-host", host, "--gopro-host", host, "--gopro-port", "0"]
    command += ["--out", str(folder / "sim"), *scenario.simulator_options]
    with _process(command, folder, "simulate", {}) as simulator:
        if not any(line.startswith("ready ") for line in simulator.stdout or ()):
            raise RehearsalFailed(scenario.name, "the virtual kitchen did not get ready")
        yield simulator


@contextlib.contextmanager
def _process(
    command: list[str], folder: Path, name: str, environment: dict[str, str]
) -> Iterator[subprocess.Popen[str]]:
    """Run a process for as long as the block lasts; its words go to `name.log` in the folder."""
    with (folder / f"{name}.log").open("w") as log:
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
            env={**os.environ, **environment},
        )
        try:
            yield process
        finally:
            _end_group(process)
            if process.stdout:
                process.stdout.close()


def _end_group(process: subprocess.Popen[str]) -> None:
    """End a process and those of its group; what it started itself goes with it."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if not _signal_group(process, number):
            break
        end_s = time.monotonic() + LAST_WORD_S
        while time.monotonic() < end_s and _signal_group(process, 0):
            process.poll()
            time.sleep(0.02)
    process.wait()


def _signal_group(process: subprocess.Popen[str], number: int) -> bool:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return False
    return True


def _until_now(faults: list[Fault]) -> list[Fault]:
    """Let faults last that nobody has taken back."""
    now_ns = host_ns()
    return [fault | {"end_host_ns": now_ns} for fault in faults]


def _with_producers(faults: list[Fault]) -> list[Fault]:
    """Say that the producers went too, where what was killed took them with it."""
    if any(fault["kind"] == "kill_producer" for fault in faults):
        return faults
    return [*faults, faults[0] | {"kind": "stop_producer", "target": "producer"}]


def _free_host() -> str:
    for _ in range(50):
        host = f"127.{random.randint(2, 254)}.{random.randint(1, 254)}.{random.randint(2, 254)}"
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((host, 3809))
            return host
    return "127.0.0.1"


def _end_simulator(simulator: subprocess.Popen[str], scenario: Scenario) -> None:
    """End it, now that nobody records it any more; it writes its truth first."""
    simulator.terminate()
    try:
        code = simulator.wait(timeout=END_LIMIT_S)
    except subprocess.TimeoutExpired:
        code = None
    if code != 0:
        raise RehearsalFailed(scenario.name, f"the virtual kitchen ended with {code}")


def _output(recorder: subprocess.Popen[str], scenario: Scenario) -> str:
    try:
        return recorder.communicate(timeout=END_LIMIT_S)[0]
    except subprocess.TimeoutExpired as error:
        raise RehearsalFailed(scenario.name, f"the recorder did not end in {END_LIMIT_S:g} s") from error


def _finish(words: list[str], folder: Path, environment: dict[str, str], scenario: Scenario) -> None:
    """Run what an operator runs after it: `recover`, `move`."""
    done = subprocess.run(
        [KITCHENSYNC, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=END_LIMIT_S,
        env={**os.environ, **environment},
    )
    (folder / f"{words[0]}.log").write_text(done.stdout + done.stderr)
    if done.returncode:
        raise RehearsalFailed(scenario.name, f"`{words[0]}` failed: {done.stderr.strip()[-300:]}")


def _break(scenario: Scenario, recorder: subprocess.Popen[str], runtime: Path, folder: Path) -> list[Fault]:
    """Wait for the moment and do it; return the faults as they were done."""

    def look() -> dict[str, Any]:
        return _state_of(scenario, recorder, runtime)

    end_s = time.monotonic() + START_LIMIT_S
    while not _all_came(state := look()):
        if time.monotonic() > end_s:
            raise RehearsalFailed(scenario.name, "the recorder did not get every stream; see record.log")
        time.sleep(0.05)
    if scenario.kind.name == "nothing" or scenario.kind.in_simulator:
        return []
    time.sleep(scenario.at_s)
    return Breaker(scenario, folder).break_it(state, look)


def _all_came(state: dict[str, Any]) -> bool:
    return all(facts.get("first_host_ns") for facts in state["streams"].values())


def _state_of(scenario: Scenario, recorder: subprocess.Popen[str], runtime: Path) -> dict[str, Any]:
    """Ask the recorder how it is, as often as it takes. Raises RehearsalFailed when it does not say."""
    end_s = time.monotonic() + START_LIMIT_S
    while recorder.poll() is None and time.monotonic() < end_s:
        for endpoint in runtime.glob("kitchensync/*/control"):
            if state := ask(endpoint, "state"):
                return state
        time.sleep(0.05)
    raise RehearsalFailed(scenario.name, "the recorder does not answer; see record.log")


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

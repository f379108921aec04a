"""Plays one scenario: virtual kitchen and recorder as real processes, and the fault at its moment."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
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
from capture.rehearsal.scenarios import SECONDS, Scenario
from sensors.host_clock import host_ns

START_LIMIT_S = 45.0
END_LIMIT_S = 120.0
SMALL_DISK_MB = 640
RECORDING = "take"
PROCESS_OF = {"producer": "capture.producer", "drainer": "capture.drainer", "queue": "valkey-server"}


class RehearsalFailed(CaptureError):
    """The stage itself did not work: nothing can be said of the recorder."""

    def __init__(self, scenario: str, why: str) -> None:
        super().__init__(f"scenario {scenario}: {why}")


def can_mount() -> bool:
    """Tell whether this user may mount a small disk in a namespace of its own."""
    command = [*_namespace(), "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", tempfile.gettempdir()]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def _namespace() -> list[str]:
    return ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-Urm"]


def play(scenario: Scenario, folder: Path) -> None:
    """Play a scenario; leave `folder/{data/take, sim, scenario.json, record.json}`. Raises RehearsalFailed."""
    folder.mkdir(parents=True)
    command = str(Path(sys.executable).parent / "kitchensync")
    host = _free_host()
    simulate = [command, "simulate", "--seed", str(scenario.seed), "--seconds", f"{SECONDS:g}"]
    simulate += ["--hololens-host", host, "--gopro-host", host, "--gopro-port", "0"]
    simulate += ["--out", str(folder / "sim"), *scenario.simulator_options]
    with tempfile.TemporaryDirectory(prefix="ks") as runtime, _process(simulate, folder, {}) as simulator:
        _wait_until_ready(simulator, scenario)
        take = [command, "record", RECORDING, "--data", str(folder / "data"), "--hololens", host, "--json"]
        take += ["--seconds", f"{SECONDS + 20:g}"]
        if scenario.kind.needs_small_disk:
            take = _on_small_disk(take, folder)
        with _process(take, folder, {"XDG_RUNTIME_DIR": runtime}) as recorder:
            fault = _fault(scenario, recorder, Path(runtime), folder)
            output, _ = recorder.communicate(timeout=END_LIMIT_S)
        (folder / "record.json").write_text(output)
        _end_simulator(simulator, scenario)
    facts = {"recording": RECORDING, "kind": scenario.kind.name, "faults": [fault] if fault else []}
    (folder / "scenario.json").write_text(json.dumps(facts, indent=1))


@contextlib.contextmanager
def _process(
    command: list[str], folder: Path, environment: dict[str, str]
) -> Iterator[subprocess.Popen[str]]:
    """Run a process for as long as the block lasts; its words go to a log in the folder."""
    with (folder / f"{Path(command[0]).name}-{command[1]}.log").open("w") as log:
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
            if process.poll() is None:
                process.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=15)
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
            if process.stdout:
                process.stdout.close()


def _free_host() -> str:
    for _ in range(50):
        host = f"127.{random.randint(2, 254)}.{random.randint(1, 254)}.{random.randint(2, 254)}"
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((host, 3809))
            return host
    return "127.0.0.1"


def _wait_until_ready(simulator: subprocess.Popen[str], scenario: Scenario) -> None:
    for line in simulator.stdout or ():
        if line.startswith("ready "):
            return
    raise RehearsalFailed(scenario.name, "the virtual kitchen did not get ready")


def _end_simulator(simulator: subprocess.Popen[str], scenario: Scenario) -> None:
    try:
        code = simulator.wait(timeout=END_LIMIT_S)
    except subprocess.TimeoutExpired:
        code = None
    if code != 0:
        raise RehearsalFailed(scenario.name, f"the virtual kitchen ended with {code}")


def _on_small_disk(take: list[str], folder: Path) -> list[str]:
    """Let a command write to a disk of its own; what it leaves there is copied out at the end."""
    (folder / "data").mkdir()
    disk = folder / "disk"
    disk.mkdir()
    take = [str(disk) if word == str(folder / "data") else word for word in take]
    script = (
        f'mount -t tmpfs -o size={SMALL_DISK_MB}m tmpfs "{disk}" || exit 77\n'
        '"$@"\ncode=$?\n'
        f'rm -f "{disk}/filler"; cp -a "{disk}/." "{folder / "data"}/"; exit $code'
    )
    return [*_namespace(), "sh", "-c", script, "sh", *take]


def _fault(
    scenario: Scenario, recorder: subprocess.Popen[str], runtime: Path, folder: Path
) -> dict[str, Any] | None:
    """Wait for the moment and do it; return the fault as it was done."""
    state = _wait_for_packets(recorder, runtime, scenario)
    if scenario.kind.name == "nothing" or scenario.kind.simulator_fault:
        return _told_by_simulator(scenario)
    time.sleep(max(scenario.at_s - 1.0, 0.0))
    start_ns = host_ns()
    _do(scenario, int(state["pid"]), folder)
    return {
        "kind": scenario.kind.name,
        "target": scenario.target,
        "start_host_ns": start_ns,
        "end_host_ns": host_ns(),
    }


def _told_by_simulator(scenario: Scenario) -> dict[str, Any] | None:
    """The moment of a fault of the virtual kitchen is in its truth; here is only which stream it was for."""
    if not scenario.kind.simulator_fault:
        return None
    return {
        "kind": scenario.kind.name,
        "target": f"hololens/{scenario.target}",
        "start_host_ns": None,
        "end_host_ns": None,
    }


def _wait_for_packets(recorder: subprocess.Popen[str], runtime: Path, scenario: Scenario) -> dict[str, Any]:
    end_s = time.monotonic() + START_LIMIT_S
    while time.monotonic() < end_s and recorder.poll() is None:
        for endpoint in runtime.glob("kitchensync/*/control"):
            state = ask(endpoint, "state")
            if state and all(facts.get("first_host_ns") for facts in state["streams"].values()):
                return state
        time.sleep(0.05)
    raise RehearsalFailed(scenario.name, "the recorder did not get every stream")


def _do(scenario: Scenario, supervisor: int, folder: Path) -> None:
    name = scenario.kind.name
    if name == "disk_full":
        _fill(Path(f"/proc/{supervisor}/root") / (folder / "disk").relative_to("/"))
        return
    children = _children(supervisor)
    if name == "suspend":
        _freeze([supervisor, *children], scenario.lasts_s)
        return
    victims = [pid for pid, line in children.items() if PROCESS_OF[scenario.target] in line]
    victim = random.Random(scenario.seed).choice(sorted(victims))
    if name.startswith("kill"):
        os.kill(victim, signal.SIGKILL)
    else:
        _freeze([victim], scenario.lasts_s)


def _children(pid: int) -> dict[int, str]:
    """Return command lines of the children of a process."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError):
            if int((folder / "stat").read_text().rpartition(")")[2].split()[1]) == pid:
                found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    return found


def _freeze(pids: list[int], seconds: float) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(seconds)
    for pid in reversed(pids):
        os.kill(pid, signal.SIGCONT)


def _fill(disk: Path) -> None:
    """Write until nothing more fits."""
    block = bytes(1 << 20)
    with contextlib.suppress(OSError), (disk / "filler").open("wb", buffering=0) as file:
        while shutil.disk_usage(disk).free:
            file.write(block)

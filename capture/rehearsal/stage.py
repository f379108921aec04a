"""The virtual kitchen, its recorder and what an operator does after a recording, as real processes."""

from __future__ import annotations

import contextlib
import json
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kitchensync.capture.rehearsal.processes import (
    END_LIMIT_S,
    KITCHENSYNC,
    RehearsalFailed,
    free_host,
    process,
    run,
)
from kitchensync.capture.rehearsal.scenarios import CHUNK_S, RECORDING
from kitchensync.capture.session.control import ask

START_LIMIT_S = 60.0


@dataclass(frozen=True)
class ServedKitchen:
    """A virtual kitchen that serves, and the environment of those who record it."""

    host: str
    gopro: str
    environment: dict[str, str]

    def record(self, data: Path | str, seconds: float, *options: str) -> list[str]:
        """Return the command that records it."""
        command = [KITCHENSYNC, "record", RECORDING, "--data", str(data), "--hololens", self.host, "--json"]
        return [*command, "--seconds", f"{seconds:g}", "--chunk-seconds", f"{CHUNK_S:g}", *options]


@contextlib.contextmanager
def simulator(
    folder: Path, seed: int, seconds: float, options: Sequence[str] = ()
) -> Iterator[ServedKitchen]:
    """Serve the virtual kitchen; at the end it writes its truth to `folder/sim`. Raises RehearsalFailed."""
    host = free_host()
    command = [KITCHENSYNC, "simulate", "--seed", str(seed), "--seconds", f"{seconds:g}"]
    command += ["--hololens-host", host, "--gopro-host", host, "--gopro-port", "0"]
    command += ["--out", str(folder / "sim"), *options]
    with tempfile.TemporaryDirectory(prefix="ks") as runtime, process(command, folder, "simulate") as served:
        lines = (line.strip() for line in served.stdout or ())
        port = next((line.partition("=")[2] for line in lines if line.startswith("ready ")), "")
        if not port:
            raise RehearsalFailed("the virtual kitchen did not get ready")
        yield ServedKitchen(host, f"http://{host}:{port}", {"XDG_RUNTIME_DIR": runtime})
        served.terminate()
        if code := served.wait(timeout=END_LIMIT_S):
            raise RehearsalFailed(f"the virtual kitchen ended with {code}")


@dataclass(frozen=True)
class Recorder:
    """A running `record`."""

    process: subprocess.Popen[str]
    runtime: Path

    def endpoints(self) -> list[Path]:
        """Return its control socket, once there is one."""
        return list(self.runtime.glob("kitchensync/*/control"))

    def state(self) -> dict[str, Any]:
        """Ask how it is, as often as needed. Raises RehearsalFailed when it does not answer."""
        end_s = time.monotonic() + START_LIMIT_S
        while self.process.poll() is None and time.monotonic() < end_s:
            for endpoint in self.endpoints():
                if state := ask(endpoint, "state"):
                    return state
            time.sleep(0.05)
        raise RehearsalFailed("the recorder does not answer; see record.log")

    def wait_for_all(self) -> dict[str, Any]:
        """Return its state once it has every stream. Raises RehearsalFailed."""
        end_s = time.monotonic() + START_LIMIT_S
        while time.monotonic() < end_s:
            state = self.state()
            if all(facts.get("first_host_ns") for facts in state["streams"].values()):
                return state
            time.sleep(0.05)
        raise RehearsalFailed("the recorder did not get every stream; see record.log")

    def output(self) -> str:
        """Wait for its end; return what it printed. Raises subprocess.TimeoutExpired."""
        return self.process.communicate(timeout=END_LIMIT_S)[0]


@contextlib.contextmanager
def recorder(
    command: Sequence[str], folder: Path, environment: dict[str, str], **place: Any
) -> Iterator[Recorder]:
    """Run `record` for as long as the block lasts; `place` may be `cwd` and `umask`."""
    with process(command, folder, "record", environment, **place) as started:
        yield Recorder(started, Path(environment["XDG_RUNTIME_DIR"]))


def finish(words: list[str], folder: Path, environment: dict[str, str], *, cwd: Path | None = None) -> None:
    """Run what an operator runs after a recording: `recover`, `move`. Raises RehearsalFailed."""
    done = run([KITCHENSYNC, *words], folder, words[0], environment=environment, cwd=cwd)
    (folder / f"{words[0]}.log").write_text(done.stdout + done.stderr)
    if done.returncode:
        raise RehearsalFailed(f"`{words[0]}` failed: {done.stderr.strip()[-300:]}")


def status_in(printed: str) -> str:
    """Return the status of the one object that `record --json` prints; nothing where there is none."""
    try:
        return str(json.loads(printed)["status"])
    except (ValueError, KeyError):
        return ""


def keep_facts(folder: Path, output: str, facts: dict[str, Any]) -> None:
    """Write what `record` printed and what was done: `record.json` and `scenario.json`."""
    (folder / "record.json").write_text(output)
    (folder / "scenario.json").write_text(json.dumps({"recording": RECORDING, **facts}, indent=1))

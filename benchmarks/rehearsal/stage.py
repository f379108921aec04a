"""The recorder of the virtual kitchen as a real process."""

import contextlib
import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kitchensync.capture.served_kitchen import END_LIMIT_S, KITCHENSYNC, KitchenFailed, ServedKitchen, process
from kitchensync.capture.session.control import ask
from rehearsal.scenarios import RECORDING

START_LIMIT_S = 60.0
CHUNK_S = 1.0
"""Length of a chunk: short, so that faults meet the sealing too."""


def record_command(kitchen: ServedKitchen, data: Path | str, seconds: float, *options: str) -> list[str]:
    """Return the command that records a served kitchen."""
    command = [KITCHENSYNC, "record", RECORDING, "--data", str(data), "--hololens", kitchen.host, "--json"]
    return [*command, "--seconds", f"{seconds:g}", "--chunk-seconds", f"{CHUNK_S:g}", *options]


@dataclass(frozen=True)
class Recorder:
    """A running `record`."""

    process: subprocess.Popen[str]
    runtime: Path

    def endpoints(self) -> list[Path]:
        """Return its control socket, once there is one."""
        return list(self.runtime.glob("kitchensync/*/control"))

    def state(self, *, of_all: bool = False) -> dict[str, Any]:
        """Return its state, `of_all` once every stream has delivered. Raises KitchenFailed."""
        end_s = time.monotonic() + START_LIMIT_S
        while self.process.poll() is None and time.monotonic() < end_s:
            for state in filter(None, (ask(endpoint, "state") for endpoint in self.endpoints())):
                if not of_all or all(stream.get("first_host_ns") for stream in state["streams"].values()):
                    return state
            time.sleep(0.05)
        raise KitchenFailed("the recorder does not answer, or did not get every stream; see record.log")

    def wait_for_all(self) -> dict[str, Any]:
        """Return its state once every stream has delivered. Raises KitchenFailed."""
        return self.state(of_all=True)

    def output(self) -> str:
        """Wait for its end; return its standard output. Raises subprocess.TimeoutExpired."""
        return self.process.communicate(timeout=END_LIMIT_S)[0]


@contextlib.contextmanager
def recorder(
    command: Sequence[str], folder: Path, environment: dict[str, str], **place: Any
) -> Iterator[Recorder]:
    """Run `record` for as long as the block lasts; `place` may be `cwd` and `umask`."""
    with process(command, folder, "record", environment, **place) as started:
        yield Recorder(started, Path(environment["XDG_RUNTIME_DIR"]))


def status_in(output: str) -> str:
    """Return the status in the output of `record --json`, "" where there is none."""
    try:
        return str(json.loads(output)["status"])
    except (ValueError, KeyError):
        return ""


def keep_facts(folder: Path, output: str, facts: dict[str, Any]) -> None:
    """Write the output of `record` and what was done: `record.json` and `scenario.json`."""
    (folder / "record.json").write_text(output)
    (folder / "scenario.json").write_text(json.dumps({"recording": RECORDING, **facts}, indent=1))

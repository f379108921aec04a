"""Run the virtual kitchen and commands that record it, each in its own process group."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kitchensync.capture.errors import CaptureError

KITCHENSYNC = str(Path(sys.executable).parent / "kitchensync")
KILL_AFTER_S = 10.0
END_LIMIT_S = 240.0  # above PRODUCER_END_S and DRAIN_LIMIT_S together


class KitchenFailed(CaptureError):
    """The virtual kitchen, or a command run beside it, failed."""


@contextlib.contextmanager
def process(
    command: Sequence[str],
    folder: Path,
    name: str,
    environment: dict[str, str] | None = None,
    *,
    cwd: Path | None = None,
    umask: int = -1,
) -> Iterator[subprocess.Popen[str]]:
    """Run a process during the block; its stderr is written to `name.log` in the folder."""
    with (
        (folder / f"{name}.log").open("w") as log,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
            env=os.environ | (environment or {}),
            cwd=cwd,
            umask=umask,
        ) as started,
    ):
        try:
            yield started
        finally:
            _end_group(started)


def run(
    command: Sequence[str],
    folder: Path,
    name: str,
    *,
    stdin: str = "",
    limit_s: float = END_LIMIT_S,
    **options: Any,
) -> subprocess.CompletedProcess[str]:
    """Run a process to its end; `options` are those of `process`. Raises subprocess.TimeoutExpired."""
    with process(command, folder, name, **options) as started:
        stdout = started.communicate(stdin, timeout=limit_s)[0]
    stderr = (folder / f"{name}.log").read_text()
    return subprocess.CompletedProcess(command, started.returncode, stdout, stderr)


def _end_group(process: subprocess.Popen[str]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        if not _signal_group(process, number):
            break
        end_s = time.monotonic() + KILL_AFTER_S
        while time.monotonic() < end_s and _signal_group(process, 0):
            process.poll()
            time.sleep(0.02)


def _signal_group(process: subprocess.Popen[str], number: int) -> bool:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return False
    return True


def free_host() -> str:
    """Return a loopback address on which no headset is served."""
    for _ in range(50):
        host = f"127.{random.randint(2, 254)}.{random.randint(1, 254)}.{random.randint(2, 254)}"
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((host, 3809))
            return host
    return "127.0.0.1"


@dataclass(frozen=True)
class ServedKitchen:
    """Addresses of a running virtual kitchen, and the environment of commands that record it."""

    host: str
    gopro: str
    environment: dict[str, str]


@contextlib.contextmanager
def simulator(
    folder: Path, seed: int, seconds: float, options: Sequence[str] = ()
) -> Iterator[ServedKitchen]:
    """Run the virtual kitchen during the block; it writes its ground truth to `folder/sim`. Raises KitchenFailed."""
    host = free_host()
    command = [KITCHENSYNC, "simulate", "--seed", str(seed), "--seconds", f"{seconds:g}"]
    command += ["--hololens-host", host, "--gopro-host", host, "--gopro-port", "0"]
    command += ["--out", str(folder / "sim"), *options]
    with tempfile.TemporaryDirectory(prefix="ks") as runtime, process(command, folder, "simulate") as served:
        lines = (line.strip() for line in served.stdout or ())
        port = next((line.partition("=")[2] for line in lines if line.startswith("ready ")), "")
        if not port:
            raise KitchenFailed("the virtual kitchen did not get ready")
        yield ServedKitchen(host, f"http://{host}:{port}", {"XDG_RUNTIME_DIR": runtime})
        served.terminate()
        if code := served.wait(timeout=END_LIMIT_S):
            raise KitchenFailed(f"the virtual kitchen ended with {code}")


def finish(
    arguments: list[str], folder: Path, environment: dict[str, str], *, cwd: Path | None = None
) -> None:
    """Run a `kitchensync` command such as `recover` or `move`. Raises KitchenFailed."""
    command = arguments[0]
    done = run([KITCHENSYNC, *arguments], folder, command, environment=environment, cwd=cwd)
    (folder / f"{command}.log").write_text(done.stdout + done.stderr)
    if done.returncode:
        raise KitchenFailed(f"`{command}` failed: {done.stderr.strip()[-300:]}")

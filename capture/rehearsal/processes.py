"""The processes of a scenario: started in their own group, ended with everything that they started."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kitchensync.capture.errors import CaptureError

KITCHENSYNC = str(Path(sys.executable).parent / "kitchensync")
LAST_WORD_S = 10.0
END_LIMIT_S = 240.0


class RehearsalFailed(CaptureError):
    """The scenario could not be played: it shows nothing about the recorder."""


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
    """Run a process for as long as the block lasts; its stderr goes to `name.log` in the folder."""
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
    given: str = "",
    limit_s: float = END_LIMIT_S,
    **how: Any,
) -> subprocess.CompletedProcess[str]:
    """Run a process to its end, with `given` as its input; `how` is as of `process`. Raises TimeoutExpired."""
    with process(command, folder, name, **how) as started:
        stdout = started.communicate(given, timeout=limit_s)[0]
    stderr = (folder / f"{name}.log").read_text()
    return subprocess.CompletedProcess(command, started.returncode, stdout, stderr)


def _end_group(process: subprocess.Popen[str]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        if not _signal_group(process, number):
            break
        end_s = time.monotonic() + LAST_WORD_S
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
    """Return a loopback address on which nobody serves a headset."""
    for _ in range(50):
        host = f"127.{random.randint(2, 254)}.{random.randint(1, 254)}.{random.randint(2, 254)}"
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((host, 3809))
            return host
    return "127.0.0.1"

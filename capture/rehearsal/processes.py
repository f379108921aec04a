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

from capture.errors import CaptureError

KITCHENSYNC = str(Path(sys.executable).parent / "kitchensync")
LAST_WORD_S = 10.0


class RehearsalFailed(CaptureError):
    """The stage itself did not work: nothing can be said of the recorder."""

    def __init__(self, scenario: str, why: str) -> None:
        super().__init__(f"scenario {scenario}: {why}")


@contextlib.contextmanager
def process(
    command: Sequence[str],
    folder: Path,
    name: str,
    environment: dict[str, str],
    *,
    cwd: Path | None = None,
    umask: int = -1,
) -> Iterator[subprocess.Popen[str]]:
    """Run a process for as long as the block lasts; its words go to `name.log` in the folder."""
    with (folder / f"{name}.log").open("w") as log:
        started = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
            env={**os.environ, **environment},
            cwd=cwd,
            umask=umask,
        )
        try:
            yield started
        finally:
            end_group(started)
            if started.stdout:
                started.stdout.close()


def end_group(process: subprocess.Popen[str]) -> None:
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


def free_host() -> str:
    """Return a loopback address on which nobody serves a headset."""
    for _ in range(50):
        host = f"127.{random.randint(2, 254)}.{random.randint(1, 254)}.{random.randint(2, 254)}"
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((host, 3809))
            return host
    return "127.0.0.1"

"""Tools that several test folders share: real processes, started and ended."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMMAND = str(Path(sys.executable).parent / "kitchensync")
LIMIT_S = 120


@dataclass
class Kitchen:
    """A running virtual kitchen."""

    host: str
    camera: str
    out: Path
    process: subprocess.Popen[str]

    def truth(self) -> dict[str, Any]:
        """Wait for its end and return what it says it sent."""
        assert self.process.wait(timeout=LIMIT_S) == 0
        return json.loads((self.out / "truth.json").read_text())


@contextlib.contextmanager
def running(command: list[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Run a process for as long as the block lasts."""
    process = subprocess.Popen(command, text=True, start_new_session=True, **options)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if process.stdout:
            process.stdout.close()


def kitchensync(*arguments: str | Path, limit_s: float = LIMIT_S) -> subprocess.CompletedProcess[str]:
    """Run one command to its end."""
    command = [COMMAND, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=False)


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    """Return the one line of a refusal; fail on a traceback or a flood."""
    assert done.returncode in (1, 2), done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    lines = [line for line in done.stderr.strip().splitlines() if not line.startswith(("Usage:", "Try "))]
    lines = [line for line in lines if line.strip() and ": 0 s, 0 packets" not in line]
    assert len(lines) == 1, done.stderr
    return lines[0]

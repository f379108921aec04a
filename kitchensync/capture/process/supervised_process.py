"""One child process of the supervisor, restarted when it dies."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from kitchensync.capture.errors import ProcessKeepsDying
from kitchensync.capture.process.fork_server import ForkedProcess, ForkServer
from kitchensync.capture.process.worker_process import END_NOW

MAX_DEATHS = 5
"""Deaths of one process within DEATHS_WINDOW_S after which the recording is ended."""
DEATHS_WINDOW_S = 20.0


@dataclass
class SupervisedProcess:
    """One child process that is kept running until it is told to end.

    `forks` starts it with `arguments`. `hold` is a handle of the recording's lock (`capture/lock.py`), which stays
    locked while any child runs.
    """

    name: str
    arguments: list[str]
    log: Path
    hold: int | None
    forks: ForkServer
    process: ForkedProcess | subprocess.Popen[bytes] | None = None
    deaths_s: list[float] = field(default_factory=list)
    is_ending: bool = False

    def start(self) -> None:
        """Start it; if its log cannot be written, its output is discarded."""
        try:
            log = self.log.open("ab")
        except OSError:
            log = Path(os.devnull).open("ab")  # noqa: SIM115 (closed below)
        with log:
            self.process = self.forks.start(self.arguments, log.fileno(), self.hold)

    def start_to_end(self) -> None:
        """Start it to finish the remaining work and end."""
        self.is_ending = True
        self.arguments.append(END_NOW)
        self.start()

    def returncode(self) -> int | None:
        """Return the exit code, None while it runs."""
        return self.process.poll() if self.process else None

    def end(self) -> None:
        """Send SIGTERM, only once: a second signal could interrupt the orderly end."""
        if self.process is not None and self.process.poll() is None and not self.is_ending:
            self.process.terminate()
        self.is_ending = True

    def kill(self) -> None:
        """Kill it and wait for its end."""
        if self.process is not None:
            self.process.kill()  # does nothing after its end
            self.process.wait()

    def restart(self) -> None:
        """Restart it after its death. Raises ProcessKeepsDying."""
        now_s = time.monotonic()
        self.deaths_s = [death for death in self.deaths_s if now_s - death < DEATHS_WINDOW_S] + [now_s]
        if len(self.deaths_s) > MAX_DEATHS:
            raise ProcessKeepsDying(self.name, len(self.deaths_s), self.log)
        if self.is_ending and END_NOW not in self.arguments:
            self.arguments.append(END_NOW)
        self.start()

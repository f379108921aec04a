"""One child process of the supervisor: started, and restarted when it dies."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from kitchensync.capture.errors import ProcessKeepsDying
from kitchensync.capture.process.fork_server import ForkedProcess, ForkServer
from kitchensync.capture.process.worker_process import END_NOW

MAX_DEATHS = 5
"""Deaths of one process within DEATHS_WINDOW_S after which the recording is ended."""
DEATHS_WINDOW_S = 20.0


@dataclass
class SupervisedProcess:
    """One child process that is kept alive until its time has come.

    `words` are what `forks` starts it with. `hold` is a handle of the recording's lock (`capture/lock.py`): it stays
    locked for as long as any child lives.
    """

    name: str
    words: list[str]
    log: Path
    hold: int | None
    forks: ForkServer
    process: ForkedProcess | subprocess.Popen[bytes] | None = None
    deaths_s: list[float] = field(default_factory=list)
    end_asked: bool = False

    def start(self) -> None:
        """Start it."""
        with _appending(self.log) as log:
            self.process = self.forks.start(self.words, log.fileno(), self.hold)

    def start_to_end(self) -> None:
        """Start it to do what is left to do, and to end."""
        self.end_asked = True
        self.words.append(END_NOW)
        self.start()

    def returncode(self) -> int | None:
        """Return the exit code, None while it runs."""
        return self.process.poll() if self.process else None

    def end(self) -> None:
        """Ask the end (SIGTERM), once: a second signal could hit it while it is going."""
        if self.process is not None and self.process.poll() is None and not self.end_asked:
            self.process.terminate()
        self.end_asked = True

    def kill(self) -> None:
        """End it at once."""
        if self.process is not None:
            self.process.kill()  # nothing where it has ended
            self.process.wait()

    def restart(self) -> None:
        """Start it again after a death, which `session/children.py` notices. Raises ProcessKeepsDying."""
        now_s = time.monotonic()
        self.deaths_s = [death for death in self.deaths_s if now_s - death < DEATHS_WINDOW_S] + [now_s]
        if len(self.deaths_s) > MAX_DEATHS:
            raise ProcessKeepsDying(self.name, len(self.deaths_s), self.log)
        if self.end_asked and END_NOW not in self.words:
            self.words.append(END_NOW)
        self.start()


def _appending(log: Path) -> BinaryIO:
    """Open a log; where its folder is gone or full nobody reads what a process says, but it runs."""
    try:
        return log.open("ab")
    except OSError:
        return open(os.devnull, "ab")

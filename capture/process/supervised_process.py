"""One child process of the supervisor: started, restarted when it dies, with a spare that is loaded and waits."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from kitchensync.capture.errors import ProcessKeepsDying
from kitchensync.capture.process.worker_process import END_NOW, GO, MEMORY_KEPT, SPARE

MAX_DEATHS = 5
"""Deaths of one process within DEATHS_WINDOW_S after which the recording is ended."""
DEATHS_WINDOW_S = 20.0
SPARE_END_S = 2.0


@dataclass
class SupervisedProcess:
    """One child process that is kept alive until its time has come.

    `hold` is a handle of the recording's lock (`capture/lock.py`): it stays locked for as long as any child lives.
    """

    name: str
    command: list[str]
    log: Path
    hold: int | None
    process: subprocess.Popen[bytes] | None = None
    deaths_s: list[float] = field(default_factory=list)
    end_asked: bool = False
    _spare: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it: the spare, if one waits, else a new process."""
        spare, self._spare = self._spare, None
        if spare is not None and END_NOW not in self.command and _wake(spare):
            self.process = spare
        else:
            _dismiss(spare)
            self.process = self._popen(self.command, subprocess.DEVNULL)

    def start_to_end(self) -> None:
        """Start it to do what is left to do, and to end."""
        self.end_asked = True
        self.command.append(END_NOW)
        self.start()

    def _popen(self, command: list[str], stdin: int) -> subprocess.Popen[bytes]:
        """Start a process in a session of its own, so that Ctrl-C reaches only the supervisor."""
        with _appending(self.log) as log:
            return subprocess.Popen(
                command,
                stdin=stdin,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=MEMORY_KEPT | os.environ,
                pass_fds=() if self.hold is None else (self.hold,),
            )

    def keep_spare(self) -> None:
        """Have a process wait that has imported everything: that is most of what starting takes."""
        if self.end_asked or (self._spare is not None and self._spare.poll() is None):
            return
        _dismiss(self._spare)
        self._spare = self._popen([*self.command, SPARE], subprocess.PIPE)

    def returncode(self) -> int | None:
        """Return the exit code, None while it runs."""
        return self.process.poll() if self.process else None

    def end(self) -> None:
        """Ask the end (SIGTERM), once: a second signal could hit it while it is going."""
        if self.process is not None and self.process.poll() is None and not self.end_asked:
            self.process.terminate()
        self.end_asked = True
        spare, self._spare = self._spare, None
        _dismiss(spare)

    def kill(self) -> None:
        """End it at once."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
        if self.process is not None:
            self.process.wait()
        spare, self._spare = self._spare, None
        _dismiss(spare)

    def restart(self) -> None:
        """Start it again after a death, which `session/children.py` notices. Raises ProcessKeepsDying."""
        now_s = time.monotonic()
        self.deaths_s = [death for death in self.deaths_s if now_s - death < DEATHS_WINDOW_S] + [now_s]
        if len(self.deaths_s) > MAX_DEATHS:
            raise ProcessKeepsDying(self.name, len(self.deaths_s), self.log)
        if self.end_asked and END_NOW not in self.command:
            self.command.append(END_NOW)
        self.start()


def _appending(log: Path) -> BinaryIO:
    """Open a log; where its folder is gone or full nobody reads what a process says, but it runs."""
    try:
        return log.open("ab")
    except OSError:
        return open(os.devnull, "ab")


def _wake(spare: subprocess.Popen[bytes]) -> bool:
    """Tell a spare to go; False when it has died meanwhile."""
    assert spare.stdin is not None
    try:
        with spare.stdin as stdin:
            stdin.write(GO)
    except BrokenPipeError:
        return False
    return spare.poll() is None


def _dismiss(spare: subprocess.Popen[bytes] | None) -> None:
    """Let a spare go: it ends when nothing more can come on its stdin."""
    if spare is None:
        return
    if spare.stdin is not None and not spare.stdin.closed:
        spare.stdin.close()
    try:
        spare.wait(SPARE_END_S)
    except subprocess.TimeoutExpired:  # still importing
        spare.kill()
        spare.wait()

"""Scripts that fork processes, in their own interpreter: forks of pytest would have its threads and captured output.

`run_script(script)` runs a script with everything here; `python forking.py ARGUMENTS` is a worker that is not forked.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import psutil
from waiting import until

from kitchensync.capture.process import fork_server
from kitchensync.capture.process.fork_server import ForkedProcess, ForkServer
from kitchensync.capture.process.supervised_process import SupervisedProcess

COMMAND = [sys.executable, __file__]
BEGIN = f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r}); from forking import *\n"
__all__ = [
    "COMMAND",
    "ForkServer",
    "ForkedProcess",
    "children",
    "fork_server",
    "log_lines",
    "start",
    "until",
    "work",
]


def run_script(script: str, folder: Path, **options: object) -> str:
    """Run a script in its own interpreter in a folder; check its exit code and return its output."""
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + script],
        cwd=folder,
        stdout=-1,
        stderr=-1,
        text=True,
        check=False,
        **options,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def work(arguments: Sequence[str]) -> None:
    """Print the arguments and facts about this process, then wait; or end, or die."""
    if arguments == ["end"]:
        return
    if arguments == ["die"]:
        sys.exit("why")
    is_forked = sys.argv[1:] != arguments
    print(*arguments, is_forked, os.getsid(0) == os.getpid(), os.getppid(), os.read(0, 1), flush=True)
    threading.Event().wait(60)


def start(forks: ForkServer, *arguments: str, hold: int | None = None) -> SupervisedProcess:
    """Start a worker of a server; it writes to the file `log`."""
    worker = SupervisedProcess("test", [*arguments], Path("log"), hold, forks)
    worker.start()
    return worker


def log_lines(count: int) -> list[str]:
    """Wait until the workers have printed `count` lines; return all lines."""

    def lines() -> list[str]:
        return Path("log").read_text().split("\n")[:-1]  # without a line that is being written

    until(lambda: len(lines()) >= count, f"line {count} of the log")
    return lines()


def children() -> set[int]:
    """Return the processes that this one has started."""
    return {process.pid for process in psutil.Process().children()}


if __name__ == "__main__":
    work(sys.argv[1:])

"""A process that forks others, apart from pytest: there a fork would have threads and the captured output.

`apart(script)` runs a script with everything here; `python forking.py WORDS` is one of its workers, started anew.
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
    "said",
    "start",
    "until",
    "work",
]


def apart(script: str, folder: Path, **options: object) -> str:
    """Run a script in an interpreter of its own, in a folder; return what it prints. It must end well."""
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


def work(words: Sequence[str]) -> None:
    """Say who we are, and stay; or end, or die."""
    if words == ["end"]:
        return
    if words == ["die"]:
        sys.exit("why")
    is_forked = sys.argv[1:] != words
    print(*words, is_forked, os.getsid(0) == os.getpid(), os.getppid(), os.read(0, 1), flush=True)
    threading.Event().wait(60)


def start(forks: ForkServer, *words: str, hold: int | None = None) -> SupervisedProcess:
    """Start a worker of a server; it writes to the file `log`."""
    worker = SupervisedProcess("test", [*words], Path("log"), hold, forks)
    worker.start()
    return worker


def said(count: int) -> list[str]:
    """Wait until the workers have said so many lines; return them."""

    def lines() -> list[str]:
        return Path("log").read_text().split("\n")[:-1]  # one that is being written is none yet

    until(lambda: len(lines()) >= count, f"line {count} of what the processes say")
    return lines()


def children() -> set[int]:
    """Return the processes that this one has started."""
    return {process.pid for process in psutil.Process().children()}


if __name__ == "__main__":
    work(sys.argv[1:])

"""Run tests in a copy, see which fail, and leave no process behind."""

from __future__ import annotations

import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
from clone_apart import MARK, Clone

WORKERS = 2
ALWAYS = ("-q", "-p", "no:cacheprovider")
IN_PARALLEL = ("-n", str(WORKERS), "--dist", "worksteal")
PASSED, FAILED, NOTHING = 0, 1, 5
"""Exit codes of pytest; NOTHING: no test was selected."""
INTERRUPTED = 2
"""Of a run that stopped at its first failure, where it runs in parallel."""
HEAD = "short test summary info"
NAMED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$")
END_S = 30.0
TAIL_LINES = 15


@dataclass(frozen=True)
class SuiteRun:
    """What came of one run of pytest; `code` is None where it reached its time limit."""

    code: int | None
    failed: tuple[str, ...]
    seconds: float
    tail: str

    @property
    def is_clear(self) -> bool:
        """Return whether it says something of the tests: it came to its end, or failed by name."""
        return self.code in (PASSED, NOTHING) or bool(self.failed)


def run_tests(
    clone: Clone, words: Sequence[str], limit_s: float, *, skipped: Sequence[str] = (), alone: bool = False
) -> SuiteRun:
    """Run pytest in a copy, without the tests `skipped`; `alone` in one process."""
    clone.forget_examples()
    left_out = [word for test in skipped for word in ("--deselect", test)]
    command = [clone.python, "-m", "pytest", *ALWAYS, *(() if alone else IN_PARALLEL), *left_out, *words]
    begun_s = time.monotonic()
    with tempfile.NamedTemporaryFile("w+", prefix="planted-", suffix=".log") as out:
        process = subprocess.Popen(
            command,
            cwd=clone.folder,
            env=clone.environment(),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            _end(process)
            end_left(clone)
        text = Path(out.name).read_text(encoding="utf-8", errors="replace")
    tail = "\n".join(text.splitlines()[-TAIL_LINES:])
    return SuiteRun(code, _failed(text), round(time.monotonic() - begun_s, 1), tail)


def _failed(text: str) -> tuple[str, ...]:
    """Return the tests that the summary names, each once."""
    _, _, summary = text.rpartition(HEAD)
    found = (NAMED.match(line) for line in summary.splitlines())
    return tuple(dict.fromkeys(match[1] for match in found if match))


def _end(process: subprocess.Popen[bytes]) -> None:
    """Let pytest take its fixtures down, then end it."""
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGINT)
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def end_left(clone: Clone) -> None:
    """End what tests in a copy left running, of this run or of one that was killed."""
    left = [one for one in psutil.process_iter() if _is_of(clone, one)]
    for process in left:
        try:
            process.kill()
        except psutil.Error:
            continue  # it has ended just now
    psutil.wait_procs(left, END_S)


def _is_of(clone: Clone, process: psutil.Process) -> bool:
    try:
        return process.environ().get(MARK) == str(clone.folder)
    except psutil.Error:
        return False

"""The mover of a running recording, a process of its own with the lowest priority.

    python -P -m kitchensync.storage.move.mover_process RECORDING --to DIR [--to DIR] [--parent PID]

A store that is absent, read-only, full, slow or hangs lets the spool grow and disturbs nothing else.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kitchensync.shell.end_signals import ask_at_signals
from kitchensync.shell.untrusted_json import BadJson, parse_object
from kitchensync.storage.copies.store_states import StoreReport, StoreState
from kitchensync.storage.disk.self_check import each_line
from kitchensync.storage.move.mover import StoreProgress, run_mover

FIRST_S, FINISH_S = 2.0, 10.0
REVIVE_S = 5.0
"""A mover that dies at once is not started again at once: the recorder has better things to do."""


class MoverProcess:
    """The mover of a running recording, started and ended by the recorder."""

    def __init__(self, recording: Path, targets: list[Path], log: Path) -> None:
        """Start it; its progress goes to `log`, one JSON object a line."""
        command = [sys.executable, "-P", "-m", "kitchensync.storage.move.mover_process", str(recording)]
        command += ["--parent", str(os.getpid())]
        for target in targets:
            command += ["--to", str(target)]
        self._command, self._log, self._places = command, log, [str(target) for target in targets]
        self._read, self._said = 0, dict[str, dict[str, Any]]()
        self.process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        self._started_s = time.monotonic()
        with self._log.open("ab") as output:
            return subprocess.Popen(self._command, stdout=output, stderr=output, start_new_session=True)

    def progress(self) -> list[dict[str, Any]]:
        """Return what it said last of each store, as `StoreProgress`."""
        lines: list[bytes] = []
        # The recording's folder may be moved.
        with contextlib.suppress(OSError), self._log.open("rb") as file:
            file.seek(self._read)
            lines = [*each_line(file.read())]
        self._read += sum(map(len, lines))
        for line in lines:
            with contextlib.suppress(BadJson):  # what a library wrote there is none of our lines
                said = parse_object(line)
                if "target" in said:
                    self._said[said["target"]] = said
        return list(self._said.values())

    def reports(self) -> list[StoreReport]:
        """Return the state of each store: as it was told last; one of which nothing was heard does not answer."""
        told = {said["target"]: said for said in self.progress()}
        reports = []
        for place in self._places:
            if (said := told.get(place)) is None:
                state, why = StoreState.AWAY, "it does not answer"
            else:
                state, why = StoreState(said["state"]), said["problem"]
                if state != StoreState.COPIED:
                    why = why or "run `kitchensync move` to copy the rest"
            reports.append(StoreReport(os.path.abspath(place), state, why))
        return reports

    def wait_for_first(self, limit_s: float = FIRST_S) -> None:
        """Wait until each store was tried once, but not for one that hangs."""
        end_s = time.monotonic() + limit_s
        while len(self.progress()) < len(self._places) and time.monotonic() < end_s:
            time.sleep(0.05)

    def finish(self, limit_s: float = FINISH_S) -> None:
        """Wait a while for the copies of a recording that was closed, but not for stores in trouble."""
        end_s = time.monotonic() + limit_s
        while self.process.poll() is None and time.monotonic() < end_s:
            told = self.progress()
            if told and all(said["problem"] or said["state"] == StoreState.COPIED for said in told):
                return
            time.sleep(0.1)

    def restart(self) -> int | None:
        """Start it again if it has died, at most every few seconds; return the exit code that it had then."""
        code = self.process.poll()
        if not code or time.monotonic() - self._started_s < REVIVE_S:
            return None
        self.process = self._start()
        return code

    def stop(self, timeout_s: float = 3.0) -> bool:
        """Ask the end and wait a moment; one that hangs in a dead store is killed. Tell whether it was done."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            return self.process.wait(timeout_s) == 0
        except subprocess.TimeoutExpired:
            self.process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # not even a kill ends a hanging network write
            self.process.wait(1)
        return False


def lower_priority() -> None:
    """Step behind everything else: only what the recorder leaves over is used."""
    with contextlib.suppress(OSError, AttributeError):
        os.nice(19)
    with contextlib.suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def main() -> int:
    """Go along with one recording; exit 0 when all of it is copied."""
    parser = argparse.ArgumentParser(prog="kitchensync.storage.move.mover_process")
    parser.add_argument("recording", type=Path)
    parser.add_argument("--to", type=Path, action="append", required=True)
    parser.add_argument("--parent", type=int)
    options = parser.parse_args()
    stop = threading.Event()
    ask_at_signals((signal.SIGTERM, signal.SIGINT), stop.set)
    lower_priority()
    said: dict[str, Any] = {}

    def end_with_parent() -> None:
        while os.getppid() == options.parent and not stop.wait(1.0):
            pass
        stop.set()

    def say(state: StoreProgress) -> None:
        news = (state.files_done, state.state, state.problem)
        if said.get(state.target) != news:
            said[state.target] = news
            print(json.dumps(asdict(state)), flush=True)

    if options.parent is not None:
        threading.Thread(target=end_with_parent, daemon=True).start()
    states = run_mover([options.recording], options.to, rule=None, follow=True, stop=stop, report=say)
    return 0 if all(state.finished for state in states) else 3


if __name__ == "__main__":
    sys.exit(main())

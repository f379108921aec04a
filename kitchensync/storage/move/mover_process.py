"""The mover of a running recording, a process of its own with the lowest priority.

    python -P -m kitchensync.storage.move.mover_process RECORDING --to DIR [--to DIR] [--parent PID]

A store that is absent, read-only, full, slow or hangs only makes the spool grow.
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
"""Minimum time between restarts, seconds: a mover that crashes at its start must not load the recorder."""


class MoverProcess:
    """The mover of a running recording, started and ended by the recorder."""

    def __init__(self, recording: Path, targets: list[Path], log: Path) -> None:
        """Start it; its progress goes to `log`, one JSON object per line."""
        command = [sys.executable, "-P", "-m", "kitchensync.storage.move.mover_process", str(recording)]
        command += ["--parent", str(os.getpid())]
        for target in targets:
            command += ["--to", str(target)]
        self._command, self._log, self._places = command, log, [str(target) for target in targets]
        self._read, self._states = 0, dict[str, dict[str, Any]]()
        self.process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        self._started_s = time.monotonic()
        with self._log.open("ab") as output:
            return subprocess.Popen(self._command, stdout=output, stderr=output, start_new_session=True)

    def progress(self) -> list[dict[str, Any]]:
        """Return the last progress of each store, as `StoreProgress`."""
        lines: list[bytes] = []
        # The recording's folder may be moved.
        with contextlib.suppress(OSError), self._log.open("rb") as file:
            file.seek(self._read)
            lines = [*each_line(file.read())]
        self._read += sum(map(len, lines))
        for line in lines:
            with contextlib.suppress(BadJson):  # output of a library
                state = parse_object(line)
                if "target" in state:
                    self._states[state["target"]] = state
        return list(self._states.values())

    def reports(self) -> list[StoreReport]:
        """Return the last reported state of each store; a store without a report does not answer."""
        states = {state["target"]: state for state in self.progress()}
        reports = []
        for place in self._places:
            if (state := states.get(place)) is None:
                status, why = StoreState.AWAY, "it does not answer"
            else:
                status, why = StoreState(state["state"]), state["problem"]
                if status != StoreState.COPIED:
                    why = why or "run `kitchensync move` to copy the rest"
            reports.append(StoreReport(os.path.abspath(place), status, why))
        return reports

    def wait_for_first(self, limit_s: float = FIRST_S) -> None:
        """Wait until each store was tried once, but not for a store that hangs."""
        end_s = time.monotonic() + limit_s
        while len(self.progress()) < len(self._places) and time.monotonic() < end_s:
            time.sleep(0.05)

    def finish(self, limit_s: float = FINISH_S) -> None:
        """Wait a while for the copies of a closed recording, but not for stores with problems."""
        end_s = time.monotonic() + limit_s
        while self.process.poll() is None and time.monotonic() < end_s:
            states = self.progress()
            if states and all(state["problem"] or state["state"] == StoreState.COPIED for state in states):
                return
            time.sleep(0.1)

    def restart(self) -> int | None:
        """Restart it if it has died, at most every few seconds; return its exit code then."""
        code = self.process.poll()
        if not code or time.monotonic() - self._started_s < REVIVE_S:
            return None
        self.process = self._start()
        return code

    def stop(self, timeout_s: float = 3.0) -> bool:
        """Terminate it, and kill it if it hangs in a dead store; return whether all was copied."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            return self.process.wait(timeout_s) == 0
        except subprocess.TimeoutExpired:
            self.process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # a kill does not end a hanging network write
            self.process.wait(1)
        return False


def lower_priority() -> None:
    """Use only CPU time that the recorder leaves free."""
    with contextlib.suppress(OSError, AttributeError):
        os.nice(19)
    with contextlib.suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def main() -> int:
    """Copy one recording while it runs; return 0 if all of it is copied."""
    parser = argparse.ArgumentParser(prog="kitchensync.storage.move.mover_process")
    parser.add_argument("recording", type=Path)
    parser.add_argument("--to", type=Path, action="append", required=True)
    parser.add_argument("--parent", type=int)
    options = parser.parse_args()
    stop = threading.Event()
    ask_at_signals((signal.SIGTERM, signal.SIGINT), stop.set)
    lower_priority()
    reported: dict[str, Any] = {}

    def end_with_parent() -> None:
        while os.getppid() == options.parent and not stop.wait(1.0):
            pass
        stop.set()

    def say(state: StoreProgress) -> None:
        news = (state.files_done, state.state, state.problem)
        if reported.get(state.target) != news:
            reported[state.target] = news
            print(json.dumps(asdict(state)), flush=True)

    if options.parent is not None:
        threading.Thread(target=end_with_parent, daemon=True).start()
    states = run_mover([options.recording], options.to, rule=None, follow=True, stop=stop, report=say)
    return 0 if all(state.finished for state in states) else 3


if __name__ == "__main__":
    sys.exit(main())

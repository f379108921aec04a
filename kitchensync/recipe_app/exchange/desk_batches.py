"""Batch actions of the desk: commands on many recordings, one after the other, each in its own process.

A command runs as if typed by an operator, with the same checks and messages. None starts during a recording, which
needs the computer.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kitchensync.recipe_app.one_worker import OneWorker

VERBS = ("verify", "sync", "report")
LOOK_S = 1.0
MOST_KEPT = 500  # above MOST of one batch, so a new one drops only rows of earlier ones
MOST_WORDS = 300
DONE, FAILED, REFUSED = "done", "failed", "refused"


@dataclass
class BatchRow:
    """A recording of a batch: `state` is waiting, held, doing, done, failed or refused; `said` is the reason."""

    recording: str
    name: str
    verb: str
    path: Path | None
    state: str = "waiting"
    said: str = ""

    def plain(self) -> dict[str, str]:
        """Return the row for pages, without its path."""
        shown = ("recording", "name", "verb", "state", "said")
        return {key: str(getattr(self, key)) for key in shown}


class DeskBatches:
    """The rows of the last batches and their worker, which pauses while `is_recording` returns True."""

    def __init__(self, is_recording: Callable[[], bool]) -> None:
        self._is_recording = is_recording
        self._rows: list[BatchRow] = []
        self._worker: OneWorker[BatchRow] = OneWorker("batches of the desk", self._work)

    def rows(self) -> list[dict[str, str]]:
        """Return the rows with their states, oldest first."""
        with self._worker.lock:
            return [row.plain() for row in self._rows]

    def is_busy(self) -> bool:
        """Return whether rows are queued or running."""
        with self._worker.lock:
            return any(row.state in ("waiting", "held", "doing") for row in self._rows)

    def ask(self, rows: Sequence[BatchRow]) -> None:
        """Queue rows, except refused ones, which are only shown."""
        with self._worker.lock:
            going_on = {
                (row.recording, row.verb) for row in self._rows if row.state in ("waiting", "held", "doing")
            }
            fresh = [row for row in rows if (row.recording, row.verb) not in going_on]
            self._rows = [*self._rows, *fresh][-MOST_KEPT:]
        for row in fresh:
            if row.state == "waiting":
                self._worker.add(row)

    def give_up(self) -> None:
        """Drop queued rows."""
        for row in self._worker.forget():
            self._set(row, REFUSED, "given up")

    def close(self) -> None:
        """Drop queued rows and end the running command."""
        self._worker.close()

    def _set(self, row: BatchRow, state: str, reason: str = "") -> None:
        with self._worker.lock:
            row.state, row.said = state, reason

    def _work(self, row: BatchRow) -> None:
        while self._is_recording():
            self._set(row, "held")
            if self._worker.end.wait(LOOK_S):
                return
        self._set(row, "doing")
        command = [sys.executable, "-P", "-m", "kitchensync", row.verb, str(row.path), "--json"]
        try:
            with self._worker.running(command, subprocess.PIPE, subprocess.DEVNULL) as process:
                output, _ = process.communicate()
        except OSError as error:
            self._set(row, FAILED, (error.strerror or str(error)).lower())
        else:
            self._set(row, *outcome_of(process.returncode, output))


def outcome_of(code: int, output: str) -> tuple[str, str]:
    """Return the state (done, failed or refused) and reason from a command's exit code and output."""
    try:
        answer: dict[str, Any] = json.loads(output)
    except ValueError:
        return FAILED, f"the command ended with {code}"
    status = str(answer.get("status", ""))
    reasons = [str(reason) for reason in answer.get("reasons", [])] or [str(answer.get("reason", ""))]
    words = "; ".join(filter(None, [status if status != REFUSED else "", *reasons]))[:MOST_WORDS]
    if status == REFUSED:
        return REFUSED, words
    return (DONE if code == 0 else FAILED), words

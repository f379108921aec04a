"""What the desk has done with many recordings: one command after the other, each a process of its own.

A command runs as an operator would type it, so it refuses what it would refuse, in its own words. Nothing is begun
while something is being recorded: the computer belongs to the recording then.
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
MOST_KEPT = 500
MOST_WORDS = 300
DONE, FAILED, REFUSED = "done", "failed", "refused"


@dataclass
class BatchRow:
    """One recording of a batch: `state` is waiting, held, doing, done, failed or refused; `said` is why."""

    recording: str
    name: str
    verb: str
    path: Path | None
    state: str = "waiting"
    said: str = ""

    def plain(self) -> dict[str, str]:
        """Return the row without what only this computer has to know."""
        shown = ("recording", "name", "verb", "state", "said")
        return {key: str(getattr(self, key)) for key in shown}


class DeskBatches:
    """The rows of the last batches, and who works on them; `is_recording` says that the computer is needed."""

    def __init__(self, is_recording: Callable[[], bool]) -> None:
        self._is_recording = is_recording
        self._rows: list[BatchRow] = []
        self._worker: OneWorker[BatchRow] = OneWorker("batches of the desk", self._work)

    def rows(self) -> list[dict[str, str]]:
        """Return what was asked for, oldest first, with what came of it."""
        with self._worker.lock:
            return [row.plain() for row in self._rows]

    def is_busy(self) -> bool:
        """Return whether something is still to be done."""
        with self._worker.lock:
            return any(row.state in ("waiting", "held", "doing") for row in self._rows)

    def ask(self, rows: Sequence[BatchRow]) -> None:
        """Have a command done with recordings; what is refused already is only shown."""
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
        """Do not begin what still waits."""
        for row in self._worker.forget():
            self._set(row, REFUSED, "given up")

    def close(self) -> None:
        """Give up what waits, end what is under way."""
        self._worker.close()

    def _set(self, row: BatchRow, state: str, said: str = "") -> None:
        with self._worker.lock:
            row.state, row.said = state, said

    def _work(self, row: BatchRow) -> None:
        while self._is_recording():
            self._set(row, "held")
            if self._worker.end.wait(LOOK_S):
                return
        self._set(row, "doing")
        command = [sys.executable, "-P", "-m", "kitchensync", row.verb, str(row.path), "--json"]
        try:
            with self._worker.running(command, subprocess.PIPE, subprocess.DEVNULL) as process:
                said, _ = process.communicate()
        except OSError as error:
            self._set(row, FAILED, (error.strerror or str(error)).lower())
        else:
            self._set(row, *outcome_of(process.returncode, said))


def outcome_of(code: int, said: str) -> tuple[str, str]:
    """Report how a command ended by exit code and printed object: done, failed or refused, and why."""
    try:
        answer: dict[str, Any] = json.loads(said)
    except ValueError:
        return FAILED, f"the command ended with {code}"
    status = str(answer.get("status", ""))
    reasons = [str(one) for one in answer.get("reasons", [])] or [str(answer.get("reason", ""))]
    words = "; ".join(filter(None, [status if status != REFUSED else "", *reasons]))[:MOST_WORDS]
    if status == REFUSED:
        return REFUSED, words
    return (DONE if code == 0 else FAILED), words

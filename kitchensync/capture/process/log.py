"""The common log of the processes of a recording: `logs/recording.jsonl`, one JSON object per line.

Each line has `host_ns` (CLOCK_MONOTONIC), `utc_ns`, `process`, `level`, `event`, and the facts of the event. Other
output of a process, such as a traceback, is in its own file beside it.
"""

from __future__ import annotations

import contextlib
import json
import logging
from pathlib import Path
from typing import Any

from kitchensync.shell.host_clock import utc_anchor

FILE = "recording.jsonl"
_LOGGER = logging.getLogger("kitchensync.recording")


class _Line(logging.Formatter):
    def __init__(self, process: str) -> None:
        super().__init__()
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        now = utc_anchor()
        line = {"host_ns": now.host_ns, "utc_ns": now.utc_ns, "process": self._process}
        line |= {"level": record.levelname.lower(), "event": record.getMessage()}
        return json.dumps(line | vars(record).get("facts", {}), default=str)


class _File(logging.FileHandler):
    def handleError(self, record: logging.LogRecord) -> None:
        """Skip the line: a full disk must not end a recording because of its log."""


class RecordingLog:
    """The log of one process of a recording, open until `close`."""

    def __init__(self, folder: Path, process: str) -> None:
        """Open the log in `folder`; every process appends whole lines to the same file."""
        self._handler = _File(folder / FILE, mode="a", encoding="utf-8")
        self._handler.setFormatter(_Line(process))
        _LOGGER.setLevel(logging.INFO)
        _LOGGER.propagate = False
        _LOGGER.addHandler(self._handler)

    def close(self) -> None:
        """Close the file, even if the last lines cannot be written."""
        _LOGGER.removeHandler(self._handler)
        with contextlib.suppress(OSError):
            self._handler.close()


def log_event(event: str, **facts: Any) -> None:
    """Write one event if a log is open."""
    _LOGGER.info(event, extra={"facts": facts})


def log_warning(event: str, **facts: Any) -> None:
    """Write one event as a warning."""
    _LOGGER.warning(event, extra={"facts": facts})

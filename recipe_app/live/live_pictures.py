"""Who keeps the newest pictures of running recordings: in memory alone, from processes that may fail as they like."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from kitchensync.sensors.untrusted_json import BadJson, parse_object

PROGRAM = "kitchensync.capture.monitor.picture_worker"
AGAIN_S = 10.0
"""A process that has ended is started again no sooner."""
MOST_BYTES, MOST_LINE = 1 << 20, 1000
JPEG = b"\xff\xd8"


@dataclass
class _Pictures:
    process: subprocess.Popen[bytes]
    reader: threading.Thread
    started_s: float
    newest: dict[str, tuple[int, bytes]]


class LivePictures:
    """Pictures by recording folder; a process is started when somebody asks, and ends when nobody does."""

    def __init__(self) -> None:
        """Start nothing yet."""
        self._lock = threading.Lock()
        self._of: dict[Path, _Pictures] = {}

    def newest(self, recording: Path, stream: str) -> tuple[int, bytes] | None:
        """Return arrival (host_ns) and JPEG of a stream's newest picture; None while there is none."""
        with self._lock:
            known = self._of.get(recording)
            if known is None or (
                known.process.poll() is not None and time.monotonic() - known.started_s > AGAIN_S
            ):
                known = self._of[recording] = self._started(recording)
        with suppress(OSError, ValueError):  # it has just ended
            assert known.process.stdin is not None
            known.process.stdin.write(f"{stream}\n".encode())
        return known.newest.get(stream)

    def forget(self, recording: Path) -> None:
        """End the process of a recording and what it has sent: nothing of it is to be shown now."""
        with self._lock:
            known = self._of.pop(recording, None)
        if known is not None:
            known.process.kill()
            known.reader.join()

    def close(self) -> None:
        """End all processes."""
        for recording in list(self._of):
            self.forget(recording)

    def _started(self, recording: Path) -> _Pictures:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", PROGRAM, str(recording)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
        )
        newest: dict[str, tuple[int, bytes]] = {}
        reader = threading.Thread(target=_read, args=(process, newest), name="live pictures", daemon=True)
        reader.start()
        return _Pictures(process, reader, time.monotonic(), newest)


def _read(process: subprocess.Popen[bytes], newest: dict[str, tuple[int, bytes]]) -> None:
    """Take in what a process sends until it ends; one that sends something else is killed."""
    assert process.stdin is not None
    assert process.stdout is not None
    with process.stdin, process.stdout:
        try:
            while _take(newest, process.stdout):
                pass
        except (BadJson, ValueError, KeyError, TypeError, OSError):
            process.kill()
    process.wait()


def _take(newest: dict[str, tuple[int, bytes]], pipe: IO[bytes]) -> bool:
    """Take one picture; False at the end. Raises BadJson, ValueError, KeyError for what is none."""
    line = pipe.readline(MOST_LINE)
    if not line:
        return False
    said = parse_object(line)
    size = int(said["bytes"])
    if not 0 < size <= MOST_BYTES:
        raise ValueError(size)
    jpeg = b""
    while len(jpeg) < size:
        if not (part := pipe.read(size - len(jpeg))):
            return False
        jpeg += part
    if not jpeg.startswith(JPEG):
        raise ValueError("no JPEG")
    newest[str(said["stream"])] = int(said["host_ns"]), jpeg
    return True

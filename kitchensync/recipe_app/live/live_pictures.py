"""Who keeps the newest pictures of running recordings: in memory alone, from processes that may fail as they like."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, cast

from kitchensync.shell.untrusted_json import BadJson, parse_object

PROGRAM = "kitchensync.capture.monitor.picture_worker"
AGAIN_S = 10.0
"""A process that has ended is started again no sooner."""
ASKED_S = 15.0
"""So long after it was asked for a picture of a stream is kept."""
END_S = 1.0
MOST_BYTES, MOST_LINE = 1 << 20, 10_000
JPEG = b"\xff\xd8"


@dataclass(frozen=True)
class LivePicture:
    """A picture of a stream, small, as JPEG."""

    host_ns: int
    "Arrival of its packet."
    jpeg: bytes
    came_ms: int
    "When it came here, on the monotonic clock: greater than of every picture that came before."


@dataclass
class _Pictures:
    process: subprocess.Popen[bytes]
    started_s: float
    reader: threading.Thread | None = None
    newest: dict[str, LivePicture] = field(default_factory=dict)
    asked_s: dict[str, float] = field(default_factory=dict)
    "When each stream was asked for last, those of a while ago left out."


class LivePictures:
    """Pictures by recording folder; a process is started when somebody asks, and ends when nobody does."""

    def __init__(self) -> None:
        """Start nothing yet."""
        self._changed = threading.Condition()
        self._of: dict[Path, _Pictures] = {}

    def newest(
        self, recording: Path, streams: Collection[str], *, after_ms: int = 0, wait_s: float = 0.0
    ) -> dict[str, LivePicture]:
        """Return the newest picture of each stream where it came after `after_ms`; wait so long for the first.

        An `after_ms` that is still to come is of another start of the computer, and asks for all.
        """
        now_s = time.monotonic()
        with self._changed:
            # A process that has ended may be started again after a while.
            self._of = {
                path: one
                for path, one in self._of.items()
                if not (one.process.poll() is not None and now_s - one.started_s > AGAIN_S)
            }
            known = self._of.get(recording) or self._started(recording)
            self._of[recording] = known
            asked_s = known.asked_s | dict.fromkeys(streams, now_s)
            known.asked_s = {name: at_s for name, at_s in asked_s.items() if now_s - at_s < ASKED_S}
        with suppress(OSError, ValueError):  # it has just ended
            assert known.process.stdin is not None
            known.process.stdin.write("".join(f"{stream}\n" for stream in streams).encode())
        since_ms = after_ms if after_ms <= _now_ms() else 0

        def newer() -> dict[str, LivePicture]:
            found = {name: known.newest[name] for name in streams if name in known.newest}
            return {name: picture for name, picture in found.items() if picture.came_ms > since_ms}

        with self._changed:
            self._changed.wait_for(newer, wait_s)
            return newer()

    def forget(self, recording: Path) -> None:
        """End the process of a recording and what it has sent: nothing of it is to be shown now."""
        with self._changed:
            known = self._of.pop(recording, None)
        if known is not None:
            assert known.reader is not None
            known.process.kill()
            known.reader.join(END_S)

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
        assert process.stdin is not None
        os.set_blocking(process.stdin.fileno(), False)  # who stops reading holds up nobody
        pictures = _Pictures(process, time.monotonic())
        pictures.reader = threading.Thread(
            target=self._read, args=(pictures,), name="live pictures", daemon=True
        )
        pictures.reader.start()
        return pictures

    def _read(self, pictures: _Pictures) -> None:
        """Take in what a process sends until it ends; one that sends something else is killed."""
        process = pictures.process
        assert process.stdin is not None
        assert process.stdout is not None
        with process.stdin, io.BufferedReader(cast(io.FileIO, process.stdout)) as pipe:
            try:
                while sent := _taken(pipe):
                    with self._changed:
                        newest = pictures.newest | sent
                        pictures.newest = {one: newest[one] for one in pictures.asked_s if one in newest}
                        self._changed.notify_all()
            except (BadJson, ValueError, KeyError, TypeError, OSError):
                process.kill()
        pictures.newest = {}
        process.wait()


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def _taken(pipe: IO[bytes]) -> dict[str, LivePicture]:
    """Take what one look gave; nothing at the end. Raises BadJson, ValueError, KeyError, TypeError for no picture."""
    line = pipe.readline(MOST_LINE)
    found: dict[str, LivePicture] = {}
    for said in parse_object(line)["pictures"] if line else ():
        size = int(said["bytes"])
        if not 0 < size <= MOST_BYTES:
            raise ValueError(size)
        jpeg = pipe.read(size)
        if len(jpeg) < size:
            return {}
        if not jpeg.startswith(JPEG):
            raise ValueError("no JPEG")
        found[str(said["stream"])] = LivePicture(int(said["host_ns"]), jpeg, _now_ms())
    return found

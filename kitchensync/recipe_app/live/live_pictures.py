"""The newest frames of running recordings, in memory only, decoded by separate processes that may crash."""

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
"""Minimum time between two starts of a recording's process, seconds."""
REQUEST_LASTS_S = 15.0
"""Time that frames of a stream are kept after the last request, seconds."""
END_S = 1.0  # the reader is at its end as soon as the killed process's pipe closes
MOST_BYTES, MOST_LINE = 1 << 20, 10_000  # frames are 320 pixels wide; a line names at most 64 of them
JPEG = b"\xff\xd8"


@dataclass(frozen=True)
class LivePicture:
    """A small frame of a stream as JPEG."""

    host_ns: int
    "Arrival of its packet."
    jpeg: bytes
    came_ms: int
    "Its arrival here on the monotonic clock."


@dataclass
class _Pictures:
    process: subprocess.Popen[bytes]
    started_s: float
    reader: threading.Thread | None = None
    newest: dict[str, LivePicture] = field(default_factory=dict)
    requested_s: dict[str, float] = field(default_factory=dict)
    "The last request for each stream, without streams that expired."


class LivePictures:
    """Frames by recording folder; a process starts on demand and ends when requests stop."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._of: dict[Path, _Pictures] = {}

    def newest(
        self, recording: Path, streams: Collection[str], *, after_ms: int = 0, wait_s: float = 0.0
    ) -> dict[str, LivePicture]:
        """Return the newest frame of each stream that arrived after `after_ms`; wait up to `wait_s` for the first.

        An `after_ms` in the future is from before a restart of the computer, and requests all.
        """
        now_s = time.monotonic()
        with self._changed:
            # Forgetting a process that has ended lets it start again.
            for path, old in list(self._of.items()):
                if old.process.poll() is not None and now_s - old.started_s > AGAIN_S:
                    del self._of[path]
            pictures = self._of.get(recording) or self._started(recording)
            self._of[recording] = pictures
            requested_s = pictures.requested_s | dict.fromkeys(streams, now_s)
            pictures.requested_s = {
                name: at_s for name, at_s in requested_s.items() if now_s - at_s < REQUEST_LASTS_S
            }
        with suppress(OSError, ValueError):  # it has just ended
            assert pictures.process.stdin is not None
            pictures.process.stdin.write("".join(f"{stream}\n" for stream in streams).encode())
        since_ms = after_ms if after_ms <= _now_ms() else 0

        def newer() -> dict[str, LivePicture]:
            newest = {name: pictures.newest[name] for name in streams if name in pictures.newest}
            return {name: picture for name, picture in newest.items() if picture.came_ms > since_ms}

        with self._changed:
            self._changed.wait_for(newer, wait_s)
            return newer()

    def forget(self, recording: Path) -> None:
        """End the process of a recording and drop its frames, which must not be shown now."""
        with self._changed:
            pictures = self._of.pop(recording, None)
        if pictures is not None:
            assert pictures.reader is not None
            pictures.process.kill()
            pictures.reader.join(END_S)

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
        os.set_blocking(process.stdin.fileno(), False)  # a process that stops reading must not block the app
        pictures = _Pictures(process, time.monotonic())
        pictures.reader = threading.Thread(
            target=self._read, args=(pictures,), name="live pictures", daemon=True
        )
        pictures.reader.start()
        return pictures

    def _read(self, pictures: _Pictures) -> None:
        """Read frames from a process until it ends; kill it if it sends anything else."""
        process = pictures.process
        assert process.stdin is not None
        assert process.stdout is not None
        with process.stdin, io.BufferedReader(cast(io.FileIO, process.stdout)) as pipe:
            try:
                while sent := _taken(pipe):
                    with self._changed:
                        newest = pictures.newest | sent
                        pictures.newest = {
                            name: newest[name] for name in pictures.requested_s if name in newest
                        }
                        self._changed.notify_all()
            except (BadJson, ValueError, KeyError, TypeError, OSError):
                process.kill()
        pictures.newest = {}
        process.wait()


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def _taken(pipe: IO[bytes]) -> dict[str, LivePicture]:
    """Read one batch of frames; empty at the end. Raises BadJson, ValueError, KeyError, TypeError if malformed."""
    line = pipe.readline(MOST_LINE)
    pictures: dict[str, LivePicture] = {}
    for header in parse_object(line)["pictures"] if line else ():
        size = int(header["bytes"])
        if not 0 < size <= MOST_BYTES:
            raise ValueError(size)
        jpeg = pipe.read(size)
        if len(jpeg) < size:
            return {}
        if not jpeg.startswith(JPEG):
            raise ValueError("no JPEG")
        pictures[str(header["stream"])] = LivePicture(int(header["host_ns"]), jpeg, _now_ms())
    return pictures

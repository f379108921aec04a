"""Look at HDF5 files of doubtful content in a process apart: a damaged one may crash the library or hang it.

python -P -m storage.chunks.apart        paths on stdin, one a line; answers on stdout, one JSON object a line
"""

from __future__ import annotations

import base64
import json
import queue
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from storage.chunks.chunk import Chunk
from storage.chunks.chunk_format import INDEX
from storage.chunks.chunk_reader import UNREADABLE
from storage.errors import BadChunk

LIMIT_S = 30.0
BYTES_PER_S = 5_000_000
"""A reading that takes longer than the limit and this slow a disk hangs."""

MOST_BYTES = 8 << 30
"""Of address space; a sealed file is at most some hundred megabytes in memory."""


@dataclass(frozen=True)
class FileLook:
    """What a file says of itself: the places whose checksum does not fit, and its index where that one does."""

    damage: list[str]
    index: npt.NDArray[np.void] | None


class ReaderApart:
    """The process apart, started when it is first needed, started again when a file has killed it."""

    def __init__(self, limit_s: float | None = None) -> None:
        """`limit_s` is for a small file; large ones get more."""
        self._limit_s = LIMIT_S if limit_s is None else limit_s
        self._process: subprocess.Popen[str] | None = None
        self._answers: queue.Queue[str] = queue.Queue()
        self._listener = threading.Thread()

    def __enter__(self) -> ReaderApart:
        """Return the reader; nothing is started yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        self._end()

    def look(self, path: Path) -> FileLook:
        """Check every checksum inside a sealed file; never raises for what is wrong with it, and always ends."""
        process = self._running()
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(str(path.absolute())) + "\n")
            process.stdin.flush()
            line = self._answers.get(timeout=self._limit_s + path.stat().st_size / BYTES_PER_S)
        except queue.Empty:
            self._end()
            return FileLook(["structure: reading it does not end"], None)
        except OSError:
            line = ""
        if not line:
            self._end()
            return FileLook(["structure: reading it crashes HDF5"], None)
        answer = json.loads(line)
        rows = answer["index"]
        return FileLook(
            answer["damage"], None if rows is None else np.frombuffer(base64.b64decode(rows), INDEX)
        )

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None:
            command = [sys.executable, "-P", "-m", "storage.chunks.apart"]
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
            )
            self._answers = queue.Queue()
            self._listener = threading.Thread(target=_pass_on, args=(self._process, self._answers))
            self._listener.start()
        return self._process

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._listener.join()
            for pipe in (self._process.stdin, self._process.stdout):
                assert pipe is not None
                pipe.close()
            self._process = None


def _pass_on(process: subprocess.Popen[str], answers: queue.Queue[str]) -> None:
    """Hand over every line, and an empty one at the end."""
    assert process.stdout is not None
    for line in process.stdout:
        answers.put(line)
    answers.put("")


def look_here(path: Path) -> FileLook:
    """Check every checksum inside a sealed file, in this process."""
    try:
        with Chunk(path) as chunk:
            damage = chunk.damage()
            return FileLook(damage, None if "index" in damage else chunk.index)
    except BadChunk as error:
        return FileLook([f"structure: {error.why}"], None)
    except UNREADABLE as error:
        return FileLook([f"structure: {error}"], None)


def main() -> None:
    """Answer one path after another; a damaged size must not take all of the computer's memory."""
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    for line in sys.stdin:
        look = look_here(Path(json.loads(line)))
        rows = None if look.index is None else base64.b64encode(look.index.tobytes()).decode()
        print(json.dumps({"damage": look.damage, "index": rows}), flush=True)


if __name__ == "__main__":
    main()

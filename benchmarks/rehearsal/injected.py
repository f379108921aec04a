"""A clock that can be set back, a disk that can be slow, a drainer with a bug: for the processes of a rehearsal.

Setting the clock of this computer, or slowing its disk down, is not ours to do. So the recorder's processes are
started with a `sitecustomize` that imports this module: `time.time` and `time.time_ns` go by the file
`clock_ns`, `os.fsync` and `os.writev` by the file `disk_s`, both in the folder that KITCHENSYNC_REHEARSAL names.
While a file `bug` names a stream there, no drainer can seal that stream.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

BENCHMARKS = Path(__file__).resolve().parents[1]
VARIABLE = "KITCHENSYNC_REHEARSAL"
CLOCK, DISK, BUG = "clock_ns", "disk_s", "bug"
"""Files: the clock's step (nanoseconds), the disk's delay (seconds a call), the stream that no drainer can seal."""
RECORDERS = {"kitchensync.capture.worker", "record", "recover"}
"""Words of the commands that drain, or that what drains is forked from."""
LINE = f"import sys\nsys.path.append({str(BENCHMARKS)!r})\nimport rehearsal.injected as it\nit.install()\n"
"""The whole `sitecustomize.py`."""


def prepare(folder: Path) -> dict[str, str]:
    """Make the folder; return the environment of processes that are to go by it."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(LINE)
    path = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {VARIABLE: str(folder), "PYTHONPATH": os.pathsep.join(path)}


def put(folder: Path, name: str, value: float | str) -> None:
    """Write one of the files; it holds from now on."""
    part = folder / f"{name}.part"
    part.write_text(str(value))
    part.replace(folder / name)


def install() -> None:
    """Go by the folder from now on, in this process."""
    folder = Path(os.environ[VARIABLE])
    real_time_ns, real_fsync, real_writev = time.time_ns, os.fsync, os.writev

    def time_ns() -> int:
        return real_time_ns() + int(_value(folder / CLOCK))

    def fsync(fd: Any) -> None:
        time.sleep(_value(folder / DISK))
        real_fsync(fd)

    def writev(handle: int, buffers: Any) -> int:
        time.sleep(_value(folder / DISK))
        return real_writev(handle, buffers)

    time.time_ns = time_ns
    vars(time)["time"] = lambda: time_ns() / 1e9
    os.fsync, os.writev = fsync, writev
    if RECORDERS & set(sys.orig_argv):
        _install_bug(folder / BUG)


def _install_bug(bug: Path) -> None:
    import kitchensync.storage.chunks.chunk_writer as chunk

    right = chunk.seal

    def seal(folder: Path, *rest: Any, **more: Any) -> Any:
        if bug.exists() and folder.name == bug.read_text():
            raise TypeError("a bug planted by the rehearsal")
        return right(folder, *rest, **more)

    vars(chunk)["seal"] = seal


def _value(file: Path) -> float:
    try:
        return float(file.read_text())
    except FileNotFoundError:
        return 0.0

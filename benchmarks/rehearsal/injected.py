"""A clock that can be set, a disk that can be slow and a drainer with a bug, in the processes of a recorder alone.

Those start with a `sitecustomize` that calls `install`: they obey the files in the folder of KITCHENSYNC_REHEARSAL.
"""

import os
import time
from functools import partial
from pathlib import Path
from typing import Any

VARIABLE = "KITCHENSYNC_REHEARSAL"
CLOCK, DISK, BUG = "clock_ns", "disk_s", "bug"
"""Files: step of the clock (ns), delay of each fsync and writev (s), stream that no drainer can seal."""
SITE = f"""import sys
sys.path.append({str(Path(__file__).resolve().parents[1])!r})
from rehearsal.injected import install
install()
"""


def prepare(folder: Path) -> dict[str, str]:
    """Make the folder; return the environment of processes that obey it."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(SITE)
    path = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {VARIABLE: str(folder), "PYTHONPATH": os.pathsep.join(path)}


def put(folder: Path, name: str, value: float | str) -> None:
    """Write one of the files; it holds from now on."""
    part = folder / f"{name}.part"
    part.write_text(str(value))
    part.replace(folder / name)


def install() -> None:
    """Obey the folder from now on, in this process."""
    folder = Path(os.environ[VARIABLE])
    real_time_ns = time.time_ns
    time.time_ns = lambda: real_time_ns() + int(_value(folder / CLOCK))
    vars(time)["time"] = lambda: time.time_ns() / 1e9
    os.fsync, os.writev = (partial(_slow, call, folder / DISK) for call in (os.fsync, os.writev))
    import kitchensync.storage.chunks.chunk_writer as chunks  # it finds the clock that was set

    vars(chunks)["seal"] = partial(_seal_or_fail, chunks.seal, folder / BUG)


def _value(file: Path) -> float:
    return float(file.read_text()) if file.exists() else 0.0


def _slow(call: Any, delay: Path, *arguments: Any) -> Any:
    time.sleep(_value(delay))
    return call(*arguments)


def _seal_or_fail(seal: Any, bug: Path, folder: Path, *rest: Any, **more: Any) -> Any:
    if bug.exists() and folder.name == bug.read_text():
        raise TypeError("a bug planted by the rehearsal")
    return seal(folder, *rest, **more)

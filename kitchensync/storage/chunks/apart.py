"""Check possibly damaged HDF5 files in a separate process, because they can crash or hang the library."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kitchensync.shell.process_apart import Bounds, ChildAnswer, OutOfTime, ProcessApart, ReaderFailed
from kitchensync.storage.chunks.chunk_reader import UNREADABLE, Chunk
from kitchensync.storage.chunks.layout import INDEX
from kitchensync.storage.errors import BadChunk

LIMIT_S = 30.0
BYTES_PER_S = 5_000_000
"""Reading speed of a very slow disk; reading that takes longer than `LIMIT_S` plus this hangs."""

MOST_BYTES = 8 << 30
"""Limit of address space; a sealed file needs at most some hundred megabytes."""


@dataclass(frozen=True)
class FileLook:
    """Result of a check: damaged blocks, and the index if it is undamaged."""

    damage: list[str]
    index: npt.NDArray[np.void] | None


class ReaderApart(ProcessApart):
    """The separate process, started on demand, restarted if a file crashed it."""

    def __init__(self, limit_s: float | None = None) -> None:
        """`limit_s` is for a small file; large files get more time."""
        bounds = Bounds(LIMIT_S if limit_s is None else limit_s, MOST_BYTES)
        super().__init__(f"{__name__}:tell_look", bounds)

    def __enter__(self) -> ReaderApart:
        """Return the reader; the process is not started yet."""
        return self

    def look(self, path: Path) -> FileLook:
        """Check every checksum inside a sealed file; never raises for damage, and always ends."""
        try:
            reply = self.ask(str(path.absolute()), more_s=path.stat().st_size / BYTES_PER_S)
        except OutOfTime:
            return FileLook(["structure: reading it does not end"], None)
        except ReaderFailed:
            return FileLook(["structure: reading it crashes HDF5"], None)
        index = np.frombuffer(reply.blobs[0], INDEX) if reply.blobs else None
        return FileLook(reply.value, index)


def tell_look(path: str) -> ChildAnswer:
    """Check every checksum inside a sealed file, in this process."""
    try:
        with Chunk(Path(path)) as chunk:
            damage = chunk.damage()
            return ChildAnswer(damage, () if "index" in damage else (chunk.index.tobytes(),))
    except BadChunk as error:
        return ChildAnswer([f"structure: {error.why}"], ())
    except UNREADABLE as error:
        return ChildAnswer([f"structure: {error}"], ())

"""Check HDF5 files that may be damaged in a separate process: they can crash the library or hang it."""

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
"""A reading that takes longer than the limit and this slow a disk hangs."""

MOST_BYTES = 8 << 30
"""Of address space; a sealed file is at most some hundred megabytes in memory."""


@dataclass(frozen=True)
class FileLook:
    """What a file says of itself: the places whose checksum does not fit, and its index where that one does."""

    damage: list[str]
    index: npt.NDArray[np.void] | None


class ReaderApart(ProcessApart):
    """The process apart, started when it is first needed, started again when a file has killed it."""

    def __init__(self, limit_s: float | None = None) -> None:
        """`limit_s` is for a small file; large ones get more."""
        bounds = Bounds(LIMIT_S if limit_s is None else limit_s, MOST_BYTES)
        super().__init__(f"{__name__}:tell_look", bounds)

    def __enter__(self) -> ReaderApart:
        """Return the reader; nothing is started yet."""
        return self

    def look(self, path: Path) -> FileLook:
        """Check every checksum inside a sealed file; never raises for what is wrong with it, and always ends."""
        try:
            told = self.ask(str(path.absolute()), more_s=path.stat().st_size / BYTES_PER_S)
        except OutOfTime:
            return FileLook(["structure: reading it does not end"], None)
        except ReaderFailed:
            return FileLook(["structure: reading it crashes HDF5"], None)
        index = np.frombuffer(told.blobs[0], INDEX) if told.blobs else None
        return FileLook(told.value, index)


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

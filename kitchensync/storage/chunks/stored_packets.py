"""The packets of one stream of a recording as received; the base of all readers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from kitchensync.sensors.stream import Format
from kitchensync.shell.array_types import Mask
from kitchensync.storage.chunks.chunk_reader import Chunk, chunk_paths
from kitchensync.storage.chunks.layout import INDEX

if TYPE_CHECKING:
    from kitchensync.storage.manifest_form import StreamForm

OPEN_FILES = 4
"""Number of open chunks, for quick random access within the limit of open files for four hundred recordings."""


class StoredPackets:
    """The packets of one stream as received: an index of all, and payloads that are read on demand."""

    def __init__(self, name: str, folder: Path, description: StreamForm) -> None:
        """`description` is the stream's entry in the manifest."""
        self.name = name
        self.folder = folder
        self.description = description
        self._open: dict[int, Chunk] = {}
        self.bad: dict[int, str] = {}
        """Damaged or undecodable packets of the readings so far: number -> reason."""
        self.only_newest = False
        """Read only the newest file, as if the stream began there."""

    @property
    def format(self) -> Format:
        """Requested format (codec, size, rate), from the manifest."""
        return dict(self.description.get("format") or {})

    @cached_property
    def _parts(self) -> list[tuple[Path, npt.NDArray[np.void]]]:
        parts = []
        for path in chunk_paths(self.folder)[-1 if self.only_newest else 0 :]:
            with Chunk(path) as chunk:
                parts.append((path, chunk.index))
        return parts

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *np.cumsum([len(index) for _, index in self._parts]).tolist()]

    @cached_property
    def index(self) -> npt.NDArray[np.void]:
        """All packets, (n,) of `layout.INDEX`; `offset` counts inside the packet's own chunk."""
        return np.concatenate([index for _, index in self._parts]) if self._parts else np.empty(0, INDEX)

    @property
    def hidden(self) -> Mask:
        """Which packets are hidden, (n,): none by default."""
        return np.zeros(len(self), np.bool_)

    def __len__(self) -> int:
        """Count the packets."""
        return self._starts[-1]

    def _place(self, row: int) -> tuple[Chunk, int]:
        """Return the chunk of a packet and its row there. Raises IndexError."""
        if not 0 <= row < len(self):
            raise IndexError(f"{self.name} has {len(self)} packets, there is no packet {row}")
        part = bisect_right(self._starts, row) - 1
        if part not in self._open:
            while len(self._open) >= OPEN_FILES:
                self._open.pop(next(iter(self._open))).close()
            self._open[part] = Chunk(self._parts[part][0])
        return self._open[part], row - self._starts[part]

    def payload(self, row: int) -> bytes:
        """Read one payload, without the rest of the file; a damaged one is empty and entered in `bad`."""
        chunk, within = self._place(row)
        return dict(chunk.sound(within, within + 1, start=row - within, bad=self.bad)).get(row, b"")

    def pose(self, row: int) -> npt.NDArray[np.float32] | None:
        """Read the pose of one packet as sent, (4, 4), without the others; None if the stream has no poses."""
        chunk, within = self._place(row)
        return chunk.pose(within)

    def packets(self, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Yield (row, payload) of the packets [start, stop), some megabytes at a time; damaged ones go to `bad`."""
        stop = len(self) if stop is None else min(stop, len(self))
        for part, (path, index) in enumerate(self._parts):
            first, last = max(start - self._starts[part], 0), min(stop - self._starts[part], len(index))
            if first < last:
                with Chunk(path) as chunk:
                    yield from chunk.sound(first, last, start=self._starts[part], bad=self.bad)

    def poses(self) -> npt.NDArray[np.float32] | None:
        """Return poses as sent, (n, 4, 4) row-vector matrices in metres, or None if there are none."""
        poses = []
        for path, _ in self._parts:
            with Chunk(path) as chunk:
                poses.append(chunk.poses)
        present = [pose for pose in poses if pose is not None]
        return np.concatenate(present) if present and len(present) == len(poses) else None

    def close(self) -> None:
        """Close all open files."""
        while self._open:
            self._open.popitem()[1].close()

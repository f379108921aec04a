"""The bytes of an HDF5 file, built in memory around payloads without copying them.

HDF5 itself writes the structure (headers, tables) into a `Skeleton`, in which large datasets only get a place. The
result is a sequence of buffers in the order of the file. So a full disk is an ordinary write error and never leaves
an incomplete HDF5 file.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import h5py
import numpy as np

from kitchensync.storage.disk.durable import Buffer

PAGE = 1 << 14
LARGE = 1 << 16
"""Minimum size of an HDF5 write that is stored as a whole; smaller ones go into pages."""


class Skeleton(io.RawIOBase):
    """A sparse file in memory for the HDF5 library: unwritten parts need no memory."""

    def __init__(self) -> None:
        super().__init__()
        self._pages: dict[int, bytearray] = {}
        self.large: dict[int, bytes] = {}
        "Place -> content of the large writes."
        self._at = 0
        self.size = 0

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def writable(self) -> bool:
        """Return that it can be written."""
        return True

    def seekable(self) -> bool:
        """Return that it is seekable."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Set the position."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence]
        self._at = start + offset
        return self._at

    def tell(self) -> int:
        """Return the position."""
        return self._at

    def truncate(self, size: int | None = None) -> int:
        """Set the size."""
        self.size = self._at if size is None else size
        return self.size

    def write(self, data: Any) -> int:
        """Store a write of HDF5."""
        view = memoryview(data).cast("B")
        if len(view) >= LARGE:
            self.large[self._at] = bytes(view)
        else:
            done = 0
            while done < len(view):
                page, within = divmod(self._at + done, PAGE)
                count = min(PAGE - within, len(view) - done)
                self._pages.setdefault(page, bytearray(PAGE))[within : within + count] = view[
                    done : done + count
                ]
                done += count
        self._at += len(view)
        self.size = max(self.size, self._at)
        return len(view)

    def readinto(self, buffer: Any) -> int:
        """Read back written bytes; HDF5 reads only its own small structures."""
        view = memoryview(buffer).cast("B")
        count = max(0, min(len(view), self.size - self._at))
        view[:count] = self.small(self._at, self._at + count)
        self._at += count
        return count

    def small(self, start: int, stop: int) -> bytes:
        """Return the bytes of a range, zero where nothing was written."""
        pieces = []
        while start < stop:
            page, within = divmod(start, PAGE)
            count = min(PAGE - within, stop - start)
            content = self._pages.get(page)
            pieces.append(bytes(content[within : within + count]) if content else bytes(count))
            start += count
        return b"".join(pieces)


class PlacedContent(NamedTuple):
    """Content of a file that is not written by HDF5."""

    offset: int
    size: int
    buffers: Iterable[Buffer]


class ImageFile:
    """An HDF5 file under construction."""

    def __init__(self) -> None:
        self._skeleton = Skeleton()
        self._placed: list[PlacedContent] = []
        self.file = h5py.File(self._skeleton, "w")

    def place(self, name: str, dtype: np.dtype, count: int, size: int, buffers: Iterable[Buffer]) -> None:
        """Create a contiguous dataset of `count` elements with `size` bytes in these buffers."""
        shape, base = ((count, *dtype.shape), dtype.base)
        if not size:
            self.file.create_dataset(name, shape=shape, dtype=base)
            return
        created = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        created.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        created.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        kind = h5py.h5t.py_create(base, logical=True)
        space = h5py.h5s.create_simple(shape)
        dataset = h5py.h5d.create(self.file.id, name.encode(), kind, space, created)
        self._placed.append(PlacedContent(dataset.get_offset(), size, buffers))

    def finish(self) -> tuple[int, Iterator[Buffer]]:
        """Close the file; return its size and its content, buffer after buffer."""
        self.file.close()
        return self._skeleton.size, self._content()

    def abandon(self) -> None:
        """Close without using anything."""
        self.file.close()

    def _content(self) -> Iterator[Buffer]:
        large = [PlacedContent(at, len(content), [content]) for at, content in self._skeleton.large.items()]
        position = 0
        for placed in sorted([*self._placed, *large], key=lambda placed: placed.offset):
            if placed.offset > position:
                yield self._skeleton.small(position, placed.offset)
            yield from placed.buffers
            position = placed.offset + placed.size
        yield self._skeleton.small(position, self._skeleton.size)


def gathered(
    buffers: Sequence[Buffer], step_bytes: int = 1 << 20, small_bytes: int = 1 << 14
) -> list[Buffer]:
    """Join small neighbours, so that a write takes few buffers; large ones are left where they are."""
    result: list[Buffer] = []
    waiting: list[Buffer] = []
    size = 0
    for buffer in buffers:
        if len(buffer) < small_bytes and size < step_bytes:
            waiting.append(buffer)
            size += len(buffer)
            continue
        if waiting:
            result.append(b"".join(waiting))
        waiting, size = [], 0
        if len(buffer) < small_bytes:
            waiting, size = [buffer], len(buffer)
        else:
            result.append(buffer)
    if waiting:
        result.append(b"".join(waiting))
    return result

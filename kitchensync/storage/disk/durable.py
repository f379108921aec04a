"""The disk operations of the sealing path, in one class, so that tests can replace the disk.

Everything that must survive a power cut goes through a `Disk`: create, write, sync, rename, sync the folder. The
sealing path has no other file operations, so a power cut can only happen between these calls.
"""

from __future__ import annotations

import errno
import fcntl
import itertools
import mmap
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from kitchensync.shell.files_on_disk import sync_path

Buffer = bytes | bytearray | memoryview

GATHER = 512
"""Buffers per `writev`; the limit of Linux is 1024."""

DIRECT_BYTES = 1 << 20
"""Minimum size of files that are written past the page cache, and bytes per write: they are not read soon, and pages
for a raw depth camera can cost more CPU than all other processing of its pictures (decision 0003)."""

O_DIRECT = getattr(os, "O_DIRECT", 0)
NOT_DIRECTLY = (errno.EINVAL, errno.ENOTSUP)
"""Errors of file systems without direct writing, or for other sizes."""


class Disk:
    """The disk of this computer; every call may raise OSError."""

    mode = 0o644

    def make_folder(self, path: Path) -> None:
        """Make a folder in an existing one, unless it exists. Not yet durable."""
        path.mkdir(exist_ok=True)

    def create(self, path: Path, *, direct: bool = False) -> int:
        """Create or empty a file for writing; return its handle. The name is not yet durable.

        `direct` writes past the page cache if possible; every write then starts and ends at a page, except at the end
        of the file.
        """
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        if direct and O_DIRECT:
            try:
                return os.open(path, flags | O_DIRECT, self.mode)
            except OSError as error:
                if error.errno not in NOT_DIRECTLY:
                    raise
        return os.open(path, flags, self.mode)

    def reopen(self, path: Path, size: int) -> int:
        """Open or create a file to continue after its first `size` bytes; return its handle."""
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, self.mode)
        os.ftruncate(handle, size)
        os.lseek(handle, size, os.SEEK_SET)
        return handle

    def write(self, handle: int, buffers: Sequence[Buffer]) -> None:
        """Append buffers to the file, without joining them first. Not yet durable."""
        for start in range(0, len(buffers), GATHER):
            views = [memoryview(buffer) for buffer in buffers[start : start + GATHER] if len(buffer)]
            while views:
                views = _after(views, _written(handle, views))

    def sync(self, handle: int) -> None:
        """Return when the content of the file is on the disk."""
        os.fsync(handle)

    def close(self, handle: int) -> None:
        """Close the handle."""
        os.close(handle)

    def rename(self, old: Path, new: Path) -> None:
        """Rename a file, replacing any file of that name. Not yet durable."""
        os.rename(old, new)

    def remove(self, path: Path) -> None:
        """Remove a file if it exists. Not yet durable."""
        path.unlink(missing_ok=True)

    def sync_folder(self, path: Path) -> None:
        """Return when the names in the folder are on the disk."""
        sync_path(path)


def _written(handle: int, views: list[memoryview]) -> int:
    """Write some of these views, return the number of bytes; incomplete pages go through the page cache."""
    try:
        return os.writev(handle, views)
    except OSError as error:
        flags = fcntl.fcntl(handle, fcntl.F_GETFL)
        if error.errno not in NOT_DIRECTLY or not flags & O_DIRECT:
            raise
    fcntl.fcntl(handle, fcntl.F_SETFL, flags & ~O_DIRECT)
    return os.writev(handle, views)


def _after(views: list[memoryview], written: int) -> list[memoryview]:
    """Return the rest of buffers after their first bytes were written."""
    for number, view in enumerate(views):
        if written < len(view):
            return [view[written:], *views[number + 1 :]]
        written -= len(view)
    return []


class PrivateDisk(Disk):
    """The same, for work files that only the owner may read."""

    mode = 0o600


LOCAL, PRIVATE = Disk(), PrivateDisk()


def private(path: str, flags: int) -> int:
    """Open a work file that only the owner may read; an `opener` for `open`."""
    return os.open(path, flags, 0o600)


def write_whole(
    path: Path, pieces: Iterable[Buffer], part_suffix: str, disk: Disk = LOCAL, *, size: int = 0
) -> None:
    """Write a file atomically and synced, `size` bytes if known. Raises OSError."""
    part = path.with_name(path.name + part_suffix)
    try:
        is_large = size >= DIRECT_BYTES
        handle = disk.create(part, direct=is_large)
        try:
            for batch in _in_pages(pieces) if is_large else _in_batches(pieces):
                disk.write(handle, batch)
            disk.sync(handle)
        finally:
            disk.close(handle)
        disk.rename(part, path)
    except OSError as error:
        disk.remove(part)
        error.filename = error.filename or str(path)  # a full disk gives no name
        raise
    disk.sync_folder(path.parent)


def _in_batches(pieces: Iterable[Buffer]) -> Iterator[list[Buffer]]:
    rest = iter(pieces)
    while batch := list(itertools.islice(rest, GATHER)):
        yield batch


def _in_pages(pieces: Iterable[Buffer]) -> Iterator[list[Buffer]]:
    """Join pieces in page-aligned memory; every batch must be used before the next one is requested."""
    stage = memoryview(mmap.mmap(-1, DIRECT_BYTES))
    used = 0
    for piece in pieces:
        rest = memoryview(piece)
        while len(rest):
            count = min(len(rest), DIRECT_BYTES - used)
            stage[used : used + count] = rest[:count]
            used, rest = used + count, rest[count:]
            if used == DIRECT_BYTES:
                yield [stage]
                used = 0
    odd = used % mmap.PAGESIZE
    if used > odd:
        yield [stage[: used - odd]]
    if odd:
        yield [stage[used - odd : used]]


def make_durable_folders(folder: Path, root: Path, disk: Disk = LOCAL) -> None:
    """Make all folders below `root` down to `folder`, and sync their names, including that of `root`.

    Even a synced file is lost in a power cut if the name of its folder is lost.
    """
    chain = [root]
    for part in folder.relative_to(root).parts:
        chain.append(chain[-1] / part)
    for path in chain[1:]:
        disk.make_folder(path)
    for path in [root.parent, *chain]:
        disk.sync_folder(path)

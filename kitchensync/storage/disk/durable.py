"""The few things that a sealing path asks of a disk, in one place, so that a test can stand in for the disk.

Everything that must survive a power cut goes through a `Disk`: create, write, sync, rename, sync the folder.
Nothing else in the sealing path touches files, so the log of these calls is all that a cut can happen between.
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
"""Buffers handed to one `writev`; Linux takes 1024."""

DIRECT_BYTES = 1 << 20
"""Files from this size on are written past the page cache, this much at once: nobody reads them soon, and to find
pages for a raw depth camera can cost more CPU than all else that is done with its pictures (decision 0003)."""

O_DIRECT = getattr(os, "O_DIRECT", 0)
NOT_DIRECTLY = (errno.EINVAL, errno.ENOTSUP)
"""What file systems say that have no direct writing, or not of such pieces."""


class Disk:
    """The disk of this computer; every call raises OSError when it cannot."""

    mode = 0o644

    def make_folder(self, path: Path) -> None:
        """Make one folder whose parent exists; a folder that is there is fine. Not yet durable."""
        path.mkdir(exist_ok=True)

    def create(self, path: Path, *, direct: bool = False) -> int:
        """Open an empty file for writing, whatever was there; return its handle. The name is not yet durable.

        `direct` writes past the page cache where that can be; what is written then begins and ends at a page, but
        for the end of the file.
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
        """Open a file to go on after its first `size` bytes, new where there is none; return its handle."""
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
        """Give the handle back."""
        os.close(handle)

    def rename(self, old: Path, new: Path) -> None:
        """Give a file its other name, in place of whatever has it. Not yet durable."""
        os.rename(old, new)

    def remove(self, path: Path) -> None:
        """Take a name away; a name that is not there is fine. Not yet durable."""
        path.unlink(missing_ok=True)

    def sync_folder(self, path: Path) -> None:
        """Return when the names in the folder are on the disk."""
        sync_path(path)


def _written(handle: int, views: list[memoryview]) -> int:
    """Write some of these views, return how many bytes; what is no whole page goes through the page cache."""
    try:
        return os.writev(handle, views)
    except OSError as error:
        flags = fcntl.fcntl(handle, fcntl.F_GETFL)
        if error.errno not in NOT_DIRECTLY or not flags & O_DIRECT:
            raise
    fcntl.fcntl(handle, fcntl.F_SETFL, flags & ~O_DIRECT)
    return os.writev(handle, views)


def _after(views: list[memoryview], written: int) -> list[memoryview]:
    """Return what is left of some buffers once their first bytes are written."""
    for number, view in enumerate(views):
        if written < len(view):
            return [view[written:], *views[number + 1 :]]
        written -= len(view)
    return []


class PrivateDisk(Disk):
    """The same, for work files that only we may read."""

    mode = 0o600


LOCAL, PRIVATE = Disk(), PrivateDisk()


def private(path: str, flags: int) -> int:
    """Open a work file that only we may read; an `opener` for `open`."""
    return os.open(path, flags, 0o600)


def write_whole(
    path: Path, pieces: Iterable[Buffer], part_suffix: str, disk: Disk = LOCAL, *, size: int = 0
) -> None:
    """Write a file whose name only ever stands for whole, synced content, `size` bytes if known. Raises OSError."""
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
        error.filename = error.filename or str(path)  # a full disk names none
        raise
    disk.sync_folder(path.parent)


def _in_batches(pieces: Iterable[Buffer]) -> Iterator[list[Buffer]]:
    rest = iter(pieces)
    while batch := list(itertools.islice(rest, GATHER)):
        yield batch


def _in_pages(pieces: Iterable[Buffer]) -> Iterator[list[Buffer]]:
    """Copy pieces together into memory that begins at a page; every batch is to be used before the next is asked."""
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
    """Make every folder from below `root` down to `folder`, and sync their names, `root`'s own included.

    A file whose folder's name is lost in a power cut is lost with it, however well the file was synced.
    """
    chain = [root]
    for part in folder.relative_to(root).parts:
        chain.append(chain[-1] / part)
    for path in chain[1:]:
        disk.make_folder(path)
    for path in [root.parent, *chain]:
        disk.sync_folder(path)

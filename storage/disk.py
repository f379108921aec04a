"""The few things that a sealing path asks of a disk, in one place, so that a test can stand in for the disk.

Everything that must survive a power cut goes through a `Disk`: create, write, sync, rename, sync the folder.
Nothing else in the sealing path touches files, so the log of these calls is all that a cut can happen between.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

Buffer = bytes | bytearray | memoryview

GATHER = 512
"""Buffers handed to one `writev`; Linux takes 1024."""


class Disk(Protocol):
    """What a disk does for us. Every call raises OSError when it cannot."""

    def make_folder(self, path: Path) -> None:
        """Make one folder whose parent exists; a folder that is there is fine. Not yet durable."""

    def create(self, path: Path) -> int:
        """Open an empty file for writing, whatever was there; return its handle. The name is not yet durable."""

    def reopen(self, path: Path, size: int) -> int:
        """Open a file to go on after its first `size` bytes, new where there is none; return its handle."""

    def write(self, handle: int, buffers: Sequence[Buffer]) -> None:
        """Append buffers to the file. Not yet durable."""

    def sync(self, handle: int) -> None:
        """Return when the content of the file is on the disk."""

    def close(self, handle: int) -> None:
        """Give the handle back."""

    def rename(self, old: Path, new: Path) -> None:
        """Give a file its other name, in place of whatever has it. Not yet durable."""

    def remove(self, path: Path) -> None:
        """Take a name away; a name that is not there is fine. Not yet durable."""

    def sync_folder(self, path: Path) -> None:
        """Return when the names in the folder are on the disk."""


class LocalDisk:
    """The disk of this computer."""

    mode = 0o644

    def make_folder(self, path: Path) -> None:
        """Make one folder."""
        path.mkdir(exist_ok=True)

    def create(self, path: Path) -> int:
        """Open an empty file for writing."""
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, self.mode)

    def reopen(self, path: Path, size: int) -> int:
        """Open a file to go on in it."""
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, self.mode)
        os.ftruncate(handle, size)
        os.lseek(handle, size, os.SEEK_SET)
        return handle

    def write(self, handle: int, buffers: Sequence[Buffer]) -> None:
        """Append buffers, without joining them first."""
        for start in range(0, len(buffers), GATHER):
            views = [memoryview(buffer) for buffer in buffers[start : start + GATHER] if len(buffer)]
            while views:
                views = _after(views, os.writev(handle, views))

    def sync(self, handle: int) -> None:
        """Sync a file."""
        os.fsync(handle)

    def close(self, handle: int) -> None:
        """Close a file."""
        os.close(handle)

    def rename(self, old: Path, new: Path) -> None:
        """Rename a file."""
        os.rename(old, new)

    def remove(self, path: Path) -> None:
        """Remove a file."""
        path.unlink(missing_ok=True)

    def sync_folder(self, path: Path) -> None:
        """Sync a folder."""
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _after(views: list[memoryview], written: int) -> list[memoryview]:
    """Return what is left of some buffers once their first bytes are written."""
    for number, view in enumerate(views):
        if written < len(view):
            return [view[written:], *views[number + 1 :]]
        written -= len(view)
    return []


class PrivateDisk(LocalDisk):
    """The same, for work files that only we may read."""

    mode = 0o600


LOCAL: Disk = LocalDisk()
PRIVATE: Disk = PrivateDisk()


def private(path: str, flags: int) -> int:
    """Open a work file that only we may read; an `opener` for `open`."""
    return os.open(path, flags, 0o600)


def write_whole(path: Path, pieces: Iterable[Buffer], part_suffix: str, disk: Disk = LOCAL) -> None:
    """Write a file so that its name only ever stands for whole, synced content.

    Raises OSError (no space and the like) after removing its own partial file.
    """
    part = path.with_name(path.name + part_suffix)
    try:
        handle = disk.create(part)
        try:
            batch: list[Buffer] = []
            for piece in pieces:
                batch.append(piece)
                if len(batch) == GATHER:
                    disk.write(handle, batch)
                    batch = []
            disk.write(handle, batch)
            disk.sync(handle)
        finally:
            disk.close(handle)
        disk.rename(part, path)
    except OSError:
        disk.remove(part)
        raise
    disk.sync_folder(path.parent)


def make_durable_folders(folder: Path, root: Path, disk: Disk = LOCAL) -> None:
    """Make every folder from below `root` down to `folder`, and sync their names, `root`'s own included.

    A file whose folder's name is lost in a power cut is lost with it, however well the file was synced.
    """
    chain = [root, *(root.joinpath(*parts) for parts in _prefixes(folder.relative_to(root).parts))]
    for path in chain[1:]:
        disk.make_folder(path)
    for path in [root.parent, *chain]:
        disk.sync_folder(path)


def _prefixes(parts: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [parts[:count] for count in range(1, len(parts) + 1)]

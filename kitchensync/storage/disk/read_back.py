"""Read a file from the disk, bypassing the page cache.

After a write the page cache answers every reading, also where the disk or the network store kept something
else. Direct reading goes round the cache; where a file system has none, the cached pages are dropped first.
"""

from __future__ import annotations

import errno
import hashlib
import mmap
import os
from collections.abc import Callable
from pathlib import Path

STEP_BYTES = 4 << 20  # a multiple of the block size of any disk, as direct reading requires
DIRECT, DROPPED, CACHED = "direct", "dropped", "cached"
"""How a file was read: round the cache; cache dropped before; neither was to be had (not on this system)."""


def forget_cache(path: Path) -> bool:
    """Sync a file and ask the system to drop what it remembers of it; tell whether that can be asked here."""
    if not hasattr(os, "posix_fadvise"):
        return False
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(handle)
    return True


def stored_sha256(path: Path, stopping: Callable[[], bool] = lambda: False) -> tuple[str, str]:
    """Hash a file past the page cache; return the hash, empty once `stopping` says so, and how. Raises OSError."""
    dropped = forget_cache(path)
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_DIRECT", 0))
        how = DIRECT if hasattr(os, "O_DIRECT") else (DROPPED if dropped else CACHED)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        handle, how = os.open(path, os.O_RDONLY), DROPPED if dropped else CACHED
    try:
        return _hash_direct(handle, path, stopping), how
    except OSError as error:
        if how != DIRECT or error.errno != errno.EINVAL:
            raise
    finally:
        os.close(handle)
    handle = os.open(path, os.O_RDONLY)  # opens directly, but does not read so
    try:
        return _hash_direct(handle, path, stopping), DROPPED if dropped else CACHED
    finally:
        os.close(handle)


def _hash_direct(handle: int, path: Path, stopping: Callable[[], bool]) -> str:
    digest = hashlib.sha256()
    with mmap.mmap(-1, STEP_BYTES) as buffer, open(handle, "rb", buffering=0, closefd=False) as file:
        view = memoryview(buffer)  # direct reading wants memory that begins at a page
        try:
            while count := file.readinto(view):
                if stopping():
                    return ""
                digest.update(view[:count])
                if count % mmap.PAGESIZE and os.lseek(handle, 0, os.SEEK_CUR) >= os.fstat(handle).st_size:
                    break  # the odd end of the file: direct reading cannot go on from here
        finally:
            view.release()
    return digest.hexdigest()

"""Locks that end with the processes that hold them, however these end: no stale number of a process to trust."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

LOOK_S = 0.1


@contextlib.contextmanager
def held(path: Path, limit_s: float = 0.0) -> Iterator[int]:
    """Hold a lock while the block runs; a child that is given the handle (`pass_fds`) holds it as well.

    Raises BlockingIOError when it is not free within `limit_s`.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    end_s = time.monotonic() + limit_s
    try:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= end_s:
                    raise
                time.sleep(LOOK_S)
        yield handle
    finally:
        os.close(handle)


def is_held(path: Path) -> bool:
    """Return whether some process holds a lock; looking does not take it."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False

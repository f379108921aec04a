"""File locks that the kernel releases when their process ends, so that no stale pid files are needed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

POLL_S = 0.1  # `flock` has no time limit of its own


@contextlib.contextmanager
def hold_lock(path: Path, limit_s: float = 0.0) -> Iterator[int]:
    """Hold a lock while the block runs; a child that inherits the handle (`pass_fds`) holds it as well.

    Raises BlockingIOError if it is not free within `limit_s`.
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
                time.sleep(POLL_S)
        yield handle
    finally:
        os.close(handle)


def is_held(path: Path) -> bool:
    """Return whether some process holds a lock, without taking it."""
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

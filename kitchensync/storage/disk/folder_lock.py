"""One process at a time in a folder: the lock ends with the process that holds it, however that ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked_folder(folder: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold the lock of a folder; without `wait`, raise BlockingIOError where another has it. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)

"""What a file on a disk is asked for by everybody: to be durable, and its hash."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path


def sync_path(path: Path) -> None:
    """Return when the content of a file, or the names in a folder, are on the disk. Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def file_sha256(path: Path) -> str:
    """Hash a file, by whatever way reading is quickest."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

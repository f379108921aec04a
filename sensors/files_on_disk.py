"""What everybody asks of a file on a disk: that it is durable, with its rights from the start, and its hash."""

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


def write_with_rights(path: Path, content: bytes, rights: int = 0o600) -> None:
    """Write a file that nobody sees half-written nor, for a moment, with other rights. Raises OSError."""
    part = path.with_name(path.name + ".part")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, rights), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)

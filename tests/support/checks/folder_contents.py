"""What the files of a folder hold."""

from __future__ import annotations

import hashlib
from pathlib import Path


def contents(folder: Path, pattern: str = "**/*") -> dict[str, bytes]:
    """Return all files below a folder by path, or those of a pattern."""
    files = (path for path in sorted(folder.glob(pattern)) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def hashes(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of all files below a folder by path."""
    return {name: hashlib.sha256(content).hexdigest() for name, content in contents(folder).items()}


def holding(folder: Path, *wanted: bytes) -> list[str]:
    """Return the files below a folder that hold one of these byte strings."""
    return [name for name, content in contents(folder).items() if any(one in content for one in wanted)]

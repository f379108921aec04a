"""What is left of destroyed files: name, size and hash of each, kept in the manifest that they belonged to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sensors.files_on_disk import file_sha256
from storage.disk.durable import LOCAL, Disk

Tombstone = dict[str, Any]
"""{"file": path inside the recording, "bytes": int, "sha256": str}."""


def tombstone(folder: Path, file: str, known: Mapping[str, str]) -> Tombstone:
    """Describe a file before it is destroyed; `known` holds hashes by path. Raises OSError."""
    sha256 = known.get(file) or file_sha256(folder / file)
    return {"file": file, "bytes": (folder / file).stat().st_size, "sha256": sha256}


def destroy(folder: Path, files: Iterable[str], disk: Disk = LOCAL) -> list[str]:
    """Take files away for good, those that are gone already too; return which were there. Raises OSError."""
    found = [file for file in files if (folder / file).exists()]
    for file in found:
        disk.remove(folder / file)
    for parent in {(folder / file).parent for file in found}:
        disk.sync_folder(parent)
    return found

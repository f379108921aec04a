"""`recording.json`: what was recorded, by what, where, with which recipe; it describes all the rest."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from storage.errors import NotARecording
from storage.names import MANIFEST

SCHEMA = "recording/1"

Manifest = dict[str, Any]


def write_json(path: Path, value: Any) -> None:
    """Replace a JSON file whole: a reader sees the old content or the new, never a part."""
    part = path.with_name(path.name + ".part")
    with open(part, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1, ensure_ascii=False)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read_manifest(recording: Path) -> Manifest:
    """Read a recording's manifest. Raises NotARecording when it is missing or not what we write."""
    path = recording / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise NotARecording(recording, f"{MANIFEST} is missing") from error
    except (OSError, ValueError) as error:
        raise NotARecording(recording, f"{MANIFEST} cannot be read ({error})") from error
    if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA:
        raise NotARecording(recording, f"{MANIFEST} has not the schema {SCHEMA}")
    return manifest


@contextmanager
def edit_manifest(recording: Path) -> Iterator[Manifest]:
    """Change a manifest under a lock: the tablet's app and the recorder may both do so."""
    descriptor = os.open(recording, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        manifest = read_manifest(recording)
        yield manifest
        write_json(recording / MANIFEST, manifest)
    finally:
        os.close(descriptor)

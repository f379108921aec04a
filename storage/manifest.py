"""`recording.json`: what was recorded, by what, where, with which recipe; it describes all the rest."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from storage.disk import LOCAL, Disk, write_whole
from storage.errors import NotARecording
from storage.names import MANIFEST, MEDIA, PART_SUFFIX
from storage.self_check import CHECK, checked_json, is_sound

SCHEMA = "recording/1"
CHECKED = (MANIFEST, MEDIA)
"""These describe files that cannot change any more, but change themselves: they carry their own checksum."""

Manifest = dict[str, Any]


def write_json(path: Path, value: Any, disk: Disk = LOCAL) -> None:
    """Replace a JSON file whole: a reader sees the old content or the new, never a part. Raises OSError."""
    if path.name in CHECKED:
        text = checked_json(value, indent=1)
    else:
        text = json.dumps(value, indent=1, ensure_ascii=False).encode() + b"\n"
    write_whole(path, [text], PART_SUFFIX, disk)


def read_manifest(recording: Path) -> Manifest:
    """Read a recording's manifest. Raises NotARecording when it is missing or not what we write."""
    return _parsed(recording, _content(recording))


def _content(recording: Path) -> bytes:
    try:
        return (recording / MANIFEST).read_bytes()
    except FileNotFoundError as error:
        raise NotARecording(recording, f"{MANIFEST} is missing") from error
    except OSError as error:
        raise NotARecording(recording, f"{MANIFEST} cannot be read ({error})") from error


def _parsed(recording: Path, content: bytes) -> Manifest:
    try:
        manifest = json.loads(content.decode())
    except ValueError as error:
        raise NotARecording(recording, f"{MANIFEST} cannot be read ({error})") from error
    if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA:
        raise NotARecording(recording, f"{MANIFEST} has not the schema {SCHEMA}")
    return {key: value for key, value in manifest.items() if key != CHECK}


@contextmanager
def edit_manifest(recording: Path) -> Iterator[Manifest]:
    """Change a manifest under a lock: the tablet's app and the recorder may both do so.

    Raises NotARecording, also where its checksum says that it is damaged.
    """
    descriptor = os.open(recording, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        content = _content(recording)
        manifest = _parsed(recording, content)
        if is_sound(content) is False:  # a new checksum would hide the damage for ever
            raise NotARecording(recording, f"{MANIFEST} is damaged; restore it from a copy")
        yield manifest
        write_json(recording / MANIFEST, manifest)
    finally:
        os.close(descriptor)

"""Which recordings lie below a folder, and a line about each: what `kitchensync list` shows.

No chunk is opened: a line is made of the manifest, the answers that were kept, and the sizes of files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from storage.errors import StorageError
from storage.life import Life, life_of
from storage.manifest import Manifest, read_manifest
from storage.names import is_recording
from storage.reading.alignments import alignment_files, read_alignment
from storage.verify import FAIL, kept_verdict

HIDDEN = (".", "_")
"""Folders of our own beside the recordings begin so."""
WORST_FIRST = ("unreadable", "not_aligned", "check", "aligned")


def recordings_below(root: Path) -> Iterator[Path]:
    """Yield the recordings in a folder, however deep, in order of path; links to folders are not followed.

    A folder whose `recording.json` is lost counts. Raises NotARecording for a folder that cannot be read.
    """
    if is_recording(root):
        yield root
        return
    folders = [
        Path(one.path)
        for one in os.scandir(root)
        if one.is_dir(follow_symlinks=False) and not one.name.startswith(HIDDEN)
    ]
    for folder in sorted(folders):
        if is_recording(folder):
            yield folder
        elif os.access(folder, os.R_OK | os.X_OK):
            yield from recordings_below(folder)


def line_of(recording: Path, root: Path) -> dict[str, Any]:
    """Say of a recording what can be known without opening its streams; of a withdrawn one that it is."""
    life = life_of(recording)
    said: dict[str, Any] = {
        "recording": recording.name,
        "path": str(recording.relative_to(root)),
        "life": str(life),
    }
    if life is Life.WITHDRAWN:
        return said
    try:
        said |= _of_manifest(read_manifest(recording))
    except StorageError as error:
        return said | {"problem": str(error), "verdict": FAIL, "bytes": sum(_sizes(recording))}
    verdict = kept_verdict(recording) or {}
    if (session_s := verdict.get("session_s")) is not None:
        said["seconds"] = session_s
    return said | {
        "verdict": verdict.get("status"),
        "alignment": _alignment(recording),
        "bytes": sum(_sizes(recording)),
    }


def _of_manifest(manifest: Manifest) -> dict[str, Any]:
    started, stopped = manifest.get("started") or {}, manifest.get("stopped") or {}
    known = started.get("host_ns") and stopped.get("host_ns")
    return {
        "uuid": manifest.get("uuid"),
        "recipe": (manifest.get("recipe") or {}).get("name"),
        "person": manifest.get("pseudonym"),
        "place": manifest.get("place"),
        "consent": manifest.get("consent", "none"),
        "started": utc_words(started.get("utc_ns")),
        "seconds": (stopped["host_ns"] - started["host_ns"]) / 1e9 if known else None,
    }


def utc_words(utc_ns: int | None) -> str | None:
    """Say a moment in UTC, to the second, as ISO 8601."""
    if not isinstance(utc_ns, int):
        return None
    return datetime.fromtimestamp(utc_ns // 1_000_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _alignment(recording: Path) -> str | None:
    """The worst status of its camera files; None before `sync`."""
    found = {read_alignment(path).status for path in alignment_files(recording)}
    return next((status for status in WORST_FIRST if status in found), None)


def _sizes(folder: Path) -> Iterator[int]:
    for one in os.scandir(folder):
        if one.is_dir(follow_symlinks=False):
            yield from _sizes(Path(one.path))
        elif one.is_file(follow_symlinks=False):
            yield one.stat(follow_symlinks=False).st_size

"""The life stage of a recording, computed from its folder at each call and never stored."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from pathlib import Path

from kitchensync.storage.chunks.chunk_reader import is_archive
from kitchensync.storage.copies.copy_log import freed_to
from kitchensync.storage.errors import CopyUnfinished, ManifestDamaged, ManifestLost, Withdrawn
from kitchensync.storage.manifest import Manifest, read_manifest
from kitchensync.storage.names import COPYING, chunk_range

NEEDED = ("recording", "state", "files", "streams", "devices")
"""Keys that a manifest must have to be used."""


class Life(StrEnum):
    """The stages, as in `life` of `verify --json`; the first match counts."""

    MANIFEST_LOST = "manifest_lost"
    "There are sealed files, a ledger or films, but no readable `recording.json`."
    DAMAGED = "damaged"
    "`recording.json` is damaged, or lacks necessary keys."
    WITHDRAWN = "withdrawn"
    "The participant withdrew consent."
    COPYING = "copying"
    "An incomplete copy."
    RECORDING = "recording"
    "It is not closed, because it is being recorded or its recorder was killed."
    ELSEWHERE = "elsewhere"
    "Its large files are in stores, and freed here."
    ABORTED = "aborted"
    "It was refused at its start or aborted; it may only have entries of people."
    ARCHIVED = "archived"
    "Complete, its streams packed into one file each."
    COMPLETE = "complete"


def life_of(recording: Path) -> Life:
    """Return the life stage of the recording in a folder. Raises NotARecording if there is none."""
    try:
        manifest = read_manifest(recording)
    except ManifestLost:
        return Life.MANIFEST_LOST
    except ManifestDamaged:
        return Life.DAMAGED
    return life_by(recording, manifest)


def usable_manifest(recording: Path) -> Manifest:
    """Read the manifest of a usable recording. Raises NotARecording, Withdrawn, CopyUnfinished."""
    manifest = read_manifest(recording)
    if manifest.get("withdrawn"):
        raise Withdrawn(recording)
    if lacks := lacking(manifest):
        raise ManifestDamaged(recording, f"lacks {', '.join(lacks)}")
    if manifest.get(COPYING):
        raise CopyUnfinished(recording)
    return manifest


def lacking(manifest: Manifest) -> list[str]:
    """Return the keys that a manifest lacks."""
    return [key for key in NEEDED if key not in manifest]


def life_by(recording: Path, manifest: Manifest) -> Life:
    """Return the life stage of a recording by its manifest."""
    if manifest.get("withdrawn"):
        return Life.WITHDRAWN
    if lacking(manifest):
        return Life.DAMAGED
    if manifest.get(COPYING):
        return Life.COPYING
    if manifest["state"] not in ("complete", "aborted"):
        return Life.RECORDING
    if freed_to(recording):
        return Life.ELSEWHERE
    if manifest["state"] == "aborted":
        return Life.ABORTED
    # no stream has several files that could be packed
    sealed = [Path(name) for name in manifest["files"] if chunk_range(Path(name)) is not None]
    loose = Counter(path.parent for path in sealed if not is_archive(path))
    is_packed = any(is_archive(path) for path in sealed) and all(count < 2 for count in loose.values())
    return Life.ARCHIVED if is_packed else Life.COMPLETE


def why_aborted(manifest: Manifest) -> str:
    """Return why a recording was abandoned, which is kept but shall not be used; empty if it was not."""
    entry = manifest.get("abandoned")
    return (entry.get("reason") or "no reason was given") if isinstance(entry, dict) else ""

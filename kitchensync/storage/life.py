"""What stage of its life a recording is in: computed from its folder at each call, never stored."""

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
"""What a manifest must say before anything can be judged by it."""


class Life(StrEnum):
    """The stages, as `life` of `verify --json` says them; the first that fits counts."""

    MANIFEST_LOST = "manifest_lost"
    "There are sealed files, a ledger or films, but no `recording.json` that can be read."
    DAMAGED = "damaged"
    "`recording.json` is there and is not what was written, or lacks what everything else is judged by."
    WITHDRAWN = "withdrawn"
    "The person who cooked took the consent back."
    COPYING = "copying"
    "A copy that is not whole yet."
    RECORDING = "recording"
    "It was never closed: it is being recorded, or its recorder died."
    ELSEWHERE = "elsewhere"
    "Its large files were freed after they were copied: they lie in stores."
    ABORTED = "aborted"
    "It was refused at its start or given up; only what people entered may be there."
    ARCHIVED = "archived"
    "Complete, its streams packed into one file each."
    COMPLETE = "complete"


def life_of(recording: Path) -> Life:
    """Tell the life of the recording in a folder. Raises NotARecording where there is none."""
    try:
        manifest = read_manifest(recording)
    except ManifestLost:
        return Life.MANIFEST_LOST
    except ManifestDamaged:
        return Life.DAMAGED
    return life_by(recording, manifest)


def usable_manifest(recording: Path) -> Manifest:
    """Read a manifest that may be looked at and copied. Raises NotARecording, Withdrawn, CopyUnfinished."""
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
    """Tell the life of a recording whose manifest was read."""
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
    # no stream in several files that could be packed still
    sealed = [Path(name) for name in manifest["files"] if chunk_range(Path(name)) is not None]
    loose = Counter(path.parent for path in sealed if not is_archive(path))
    is_packed = any(is_archive(path) for path in sealed) and all(count < 2 for count in loose.values())
    return Life.ARCHIVED if is_packed else Life.COMPLETE


def why_aborted(manifest: Manifest) -> str:
    """Return why somebody aborted a recording, which is kept but shall not be used; nothing where nobody did."""
    said = manifest.get("abandoned")
    return (said.get("reason") or "no reason was given") if isinstance(said, dict) else ""

"""Which other recordings hold a film of a recording, or are a copy of it: adopted, replayed, copied by hand."""

from __future__ import annotations

import json
from pathlib import Path

from kitchensync.storage.catalogue.listing import recordings_below
from kitchensync.storage.errors import StorageError
from kitchensync.storage.manifest import Manifest, read_manifest
from kitchensync.storage.names import MEDIA


def made_of(recording: Path, manifest: Manifest) -> list[Path]:
    """Return the recordings beside one that were made of it: one of their films is to the bit one of its own.

    `manifest` may be the tombstone, which keeps the hashes.
    """
    films = _films(recording, manifest)
    return [
        other
        for other in recordings_below(recording.parent)
        if other != recording and _is_of(other, films, manifest)
    ]


def _is_of(other: Path, films: set[str], manifest: Manifest) -> bool:
    try:
        theirs = read_manifest(other)
    except StorageError:  # its films tell
        theirs = {}
    is_copy = "uuid" in theirs and theirs["uuid"] == manifest.get("uuid")
    return is_copy or bool(films & _films(other, theirs))


def _films(recording: Path, manifest: Manifest) -> set[str]:
    """Return the hashes of the films that a recording holds, and of those that it held before a redaction."""
    found = {one["sha256"] for entry in manifest.get("redactions", ()) for one in entry["films"].values()}
    held = (manifest.get("withdrawn") or {}).get("files", ())
    found |= {one["sha256"] for one in held if one["file"].upper().endswith(".MP4")}
    for path in recording.glob(f"*/{MEDIA}"):
        try:
            files = json.loads(path.read_bytes()).get("files") or []
        except ValueError:
            continue  # damaged: `verify` says so, and the manifest still tells
        found |= {str(one["sha256"]) for one in files if one.get("sha256")}
    return found

"""Which other recordings were made of a recording: cut, replayed, adopted with one of its films, copied by hand."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from kitchensync.storage.catalogue.listing import recordings_below
from kitchensync.storage.copies.derived_files import read_derived
from kitchensync.storage.errors import StorageError
from kitchensync.storage.manifest import Manifest, read_manifest
from kitchensync.storage.names import MADE_FROM, MANIFEST, MEDIA, PART_OF


def made_of(recording: Path, manifest: Manifest) -> list[Path]:
    """Return the recordings that were made of one: its copies and parts, and those that hold one of its films.

    They are looked for beside it, and in the folders into which commands noted that they wrote. `manifest` may be the
    tombstone, which keeps the hashes. A part has no film of its own: what else was made of the whole is not made of
    it.
    """
    films = set() if PART_OF in manifest else _films(recording, manifest)
    noted = read_derived(recording, (manifest.get("withdrawn") or {}).get("derived", ()))
    folders = dict.fromkeys(Path(line["path"]).parent for line in noted if "path" in line)
    places = [one.parent for folder in folders for one in folder.glob(f"*/{MANIFEST}")]
    others = {one.resolve(): one for one in [*places, *recordings_below(recording.parent)]}
    others.pop(recording.resolve(), None)
    return [other for other in others.values() if _is_of(other, films, manifest)]


def made_from(folder: Path) -> list[str]:
    """Return the uuids of the recordings that one was cut or replayed from, one from the other."""
    try:
        found: list[str] = read_manifest(folder).get(MADE_FROM, [])
    except StorageError:
        return []
    return found


def origins_of(recording: Path) -> list[Path]:
    """Return the recordings beside one that it was cut or replayed from."""
    uuids = made_from(recording)
    return [one for one in recordings_below(recording.parent) if _uuid(one) in uuids] if uuids else []


def _uuid(recording: Path) -> str | None:
    with suppress(StorageError):
        return read_manifest(recording).get("uuid")
    return None


def _is_of(other: Path, films: set[str], manifest: Manifest) -> bool:
    try:
        theirs = read_manifest(other)
    except StorageError:  # its films tell
        theirs = {}
    own = manifest.get("uuid")
    if own is not None and own in (theirs.get("uuid"), *theirs.get(MADE_FROM, ())):
        return True
    return PART_OF not in theirs and bool(films & _films(other, theirs))


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

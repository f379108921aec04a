"""Which other recordings were made of a recording: cut, replayed, adopted with one of its films, copied by hand."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kitchensync.shell.untrusted_json import BadJson
from kitchensync.storage.catalogue.listing import recordings_below
from kitchensync.storage.errors import StorageError
from kitchensync.storage.installation.own_list import Outside, own_list, uuid_of
from kitchensync.storage.manifest import Manifest, read_manifest
from kitchensync.storage.names import MADE_FROM, MANIFEST, MEDIA, PART_OF
from kitchensync.storage.recording_files.media_file import load_media


@dataclass(frozen=True)
class Related:
    """Another recording that shows the same person's recording: a copy, a part, or one with a film of it."""

    path: Path
    is_made_here: bool
    "The installation's list names it as made from that recording."
    is_same: bool
    "It has the same uuid."


def related(recording: Path, manifest: Manifest) -> list[Related]:
    """Return the recordings that were, or seem to be, made of one: its copies and parts, others with its films.

    They are searched beside it, and in the folders into which commands wrote of it. `manifest` may be the tombstone,
    which keeps the hashes. A part has no film of its own: what else was made of the whole is not made of it.
    Raises StorageError, OSError.
    """
    listed = own_list(recording).all_outside()
    own = listed.get(uuid_of(recording, manifest), Outside())
    films = set() if PART_OF in manifest else _films(recording, manifest)
    folders = dict.fromkeys(Path(line["path"]).parent for line in own.derived if "path" in line)
    places = [one.parent for folder in folders for one in folder.glob(f"*/{MANIFEST}")]
    others = {one.resolve(): one for one in [*places, *recordings_below(recording.parent)]}
    others.pop(recording.resolve(), None)
    uuid, found = manifest.get("uuid"), []
    for other in others.values():
        theirs = _manifest(other)
        is_part = uuid is not None and uuid in (theirs.get("uuid"), *theirs.get(MADE_FROM, ()))
        if is_part or (PART_OF not in theirs and films & _films(other, theirs)):
            is_same = theirs.get("uuid") == manifest.get("uuid", "")
            found.append(Related(other, _is_made_here(other, theirs, manifest, listed), is_same))
    return found


def _is_made_here(other: Path, theirs: Manifest, manifest: Manifest, listed: dict[str, Outside]) -> bool:
    """Return whether a list holds that one recording was made from another, or took in the same film.

    Who could forge the list beside the other one could have only that one destroyed.
    """
    uuid, other_uuid = str(manifest.get("uuid")), str(theirs.get("uuid"))
    if uuid == other_uuid:
        return False
    own, found = listed.get(uuid, Outside()), listed.get(other_uuid, Outside())
    if uuid in found.made_from or own.films & found.films:
        return True
    return uuid in own_list(other).outside(other_uuid).made_from


def made_from(folder: Path) -> list[str]:
    """Return the uuids of the recordings that one was cut or replayed from, one from the other."""
    return _manifest(folder).get(MADE_FROM, [])


def origins_of(recording: Path) -> list[Path]:
    """Return the recordings beside one that it was cut or replayed from."""
    uuids = made_from(recording)
    beside = recordings_below(recording.parent) if uuids else ()
    return [one for one in beside if _manifest(one).get("uuid") in uuids]


def _manifest(recording: Path) -> Manifest:
    with suppress(StorageError):
        return read_manifest(recording)
    return {}


def _films(recording: Path, manifest: Manifest) -> set[str]:
    """Return the hashes of the films that a recording holds, and of those that it held before a redaction."""
    found = {one["sha256"] for entry in manifest.get("redactions", ()) for one in entry["films"].values()}
    held = (manifest.get("withdrawn") or {}).get("files", ())
    found |= {one["sha256"] for one in held if one["file"].upper().endswith(".MP4")}
    for path in recording.glob(f"*/{MEDIA}"):
        try:
            files = load_media(path).get("files") or []
        except (BadJson, OSError):
            continue  # damaged: `verify` says so, and the manifest still tells
        found |= {str(one["sha256"]) for one in files if one.get("sha256")}
    return found

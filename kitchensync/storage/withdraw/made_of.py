"""Find recordings made from another: cut, replayed, imported with one of its videos, or copied by hand."""

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
    """A related recording: a copy, a part, or one with the same video."""

    path: Path
    is_made_here: bool
    "It was made from the recording, by the installation's list."
    is_same: bool
    "It has the same uuid."


def related(recording: Path, manifest: Manifest) -> list[Related]:
    """Return the recordings that were, or seem to be, made from one: copies, parts, and others with its videos.

    They are searched beside it, and in the folders of files that commands wrote from it. `manifest` may be the
    tombstone, which keeps the hashes. A part has no video of its own: other products of the whole recording are not
    made from the part. Raises StorageError, OSError.
    """
    listed = own_list(recording).all_outside()
    own = listed.get(uuid_of(recording, manifest), Outside())
    films = set() if PART_OF in manifest else _films(recording, manifest)
    folders = dict.fromkeys(Path(line["path"]).parent for line in own.derived if "path" in line)
    places = [path.parent for folder in folders for path in folder.glob(f"*/{MANIFEST}")]
    others = {path.resolve(): path for path in [*places, *recordings_below(recording.parent)]}
    others.pop(recording.resolve(), None)
    uuid, result = manifest.get("uuid"), []
    for other in others.values():
        theirs = _manifest(other)
        is_part = uuid is not None and uuid in (theirs.get("uuid"), *theirs.get(MADE_FROM, ()))
        if is_part or (PART_OF not in theirs and films & _films(other, theirs)):
            is_same = theirs.get("uuid") == manifest.get("uuid", "")
            result.append(Related(other, _is_made_here(other, theirs, manifest, listed), is_same))
    return result


def _is_made_here(other: Path, theirs: Manifest, manifest: Manifest, listed: dict[str, Outside]) -> bool:
    """Return whether a list says that one recording was made from another, or has the same video.

    A forged list beside the other recording could only cause that recording to be destroyed.
    """
    uuid, other_uuid = str(manifest.get("uuid")), str(theirs.get("uuid"))
    if uuid == other_uuid:
        return False
    own, theirs_outside = listed.get(uuid, Outside()), listed.get(other_uuid, Outside())
    if uuid in theirs_outside.made_from or own.films & theirs_outside.films:
        return True
    return uuid in own_list(other).outside(other_uuid).made_from


def made_from(folder: Path) -> list[str]:
    """Return the chain of uuids of the recordings that one was cut or replayed from."""
    return _manifest(folder).get(MADE_FROM, [])


def origins_of(recording: Path) -> list[Path]:
    """Return the recordings in the same folder that one was cut or replayed from."""
    uuids = made_from(recording)
    beside = recordings_below(recording.parent) if uuids else ()
    return [path for path in beside if _manifest(path).get("uuid") in uuids]


def _manifest(recording: Path) -> Manifest:
    with suppress(StorageError):
        return read_manifest(recording)
    return {}


def _films(recording: Path, manifest: Manifest) -> set[str]:
    """Return the hashes of a recording's videos, including those before a redaction."""
    hashes = {film["sha256"] for entry in manifest.get("redactions", ()) for film in entry["films"].values()}
    held = (manifest.get("withdrawn") or {}).get("files", ())
    hashes |= {film["sha256"] for film in held if film["file"].upper().endswith(".MP4")}
    for path in recording.glob(f"*/{MEDIA}"):
        try:
            files = load_media(path).get("files") or []
        except (BadJson, OSError):
            continue  # damaged, reported by `verify`
        hashes |= {str(film["sha256"]) for film in files if film.get("sha256")}
    return hashes

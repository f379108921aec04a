"""`recording.json`: what was recorded, by what, where, with which recipe; it describes all the rest."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from kitchensync.shell.files_on_disk import read_plain
from kitchensync.shell.untrusted_json import BadJson, parse_object
from kitchensync.storage.disk.durable import LOCAL, Disk, write_whole
from kitchensync.storage.disk.folder_lock import locked_folder
from kitchensync.storage.disk.self_check import CHECK, checked_json, is_sound
from kitchensync.storage.errors import CopyBegun, ManifestDamaged, ManifestLost, NotARecording, UnsafeFile
from kitchensync.storage.names import MANIFEST, MEDIA, PART_SUFFIX, holds_recorded_files
from kitchensync.storage.recording_folder import check_folder

SCHEMA = "recording/1"
CHECKED = (MANIFEST, MEDIA)
"""Files that describe unchanging files but change themselves, so that they contain their own checksum."""

MOST_NAMED = 3
"""Of recordings in a folder that is none itself."""
MOST_BYTES = 64 << 20
"""Of a manifest: that of a day with every sensor is some megabytes."""

if TYPE_CHECKING:
    from kitchensync.storage.manifest_form import Manifest
else:
    Manifest = dict  # the module of the forms loads pydantic


def write_json(path: Path, value: Any, disk: Disk = LOCAL) -> None:
    """Replace a JSON file whole: a reader sees the old content or the new, never a part. Raises OSError."""
    if path.name in CHECKED:
        text = manifest_text(value)
    else:
        text = json.dumps(value, indent=1, ensure_ascii=False).encode() + b"\n"
    write_whole(path, [text], PART_SUFFIX, disk)


def manifest_text(value: Mapping[str, Any]) -> bytes:
    """Return the content of a `recording.json` or `media.json` with its checksum."""
    return checked_json(value, indent=1)


def read_manifest(recording: Path) -> Manifest:
    """Read and check a recording's manifest: its checksum must hold, and its folder must be a recording.

    Raises NotARecording: ManifestLost where recorded files are there without it, ManifestDamaged, UnsafeFile.
    """
    try:
        content = read_plain(recording / MANIFEST, MOST_BYTES)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise _without_manifest(recording, f"{MANIFEST} is missing") from error
    except OSError as error:
        raise ManifestDamaged(recording, f"cannot be read ({error.strerror})") from error
    from kitchensync.storage import manifest_form  # loads pydantic

    try:
        manifest = parse_object(content, most_bytes=MOST_BYTES)
    except BadJson:
        if not content and not holds_recorded_files(recording):
            raise CopyBegun(recording) from None
        raise _without_manifest(recording, f"{MANIFEST} cannot be read") from None
    if manifest.get("schema") != SCHEMA and not holds_recorded_files(recording):
        raise NotARecording(recording, f"{MANIFEST} has not the schema {SCHEMA}")
    if not is_sound(content):  # a new checksum would hide the damage for ever
        raise ManifestDamaged(recording, "is damaged")
    if manifest.get("schema") != SCHEMA:
        raise ManifestDamaged(recording, f"has not the schema {SCHEMA}")
    if why := manifest_form.wrong_in(manifest_form.Manifest, manifest):
        raise ManifestDamaged(recording, f"is wrong at {why}")
    manifest.pop(CHECK, None)
    _check(recording)
    return cast(Manifest, manifest)


def _check(recording: Path) -> None:
    try:
        check_folder(recording)
    except OSError as error:
        where = os.path.relpath(error.filename or recording, recording)
        raise UnsafeFile(recording, where, f"cannot be read ({error.strerror}); check the disk") from error


def _without_manifest(recording: Path, why: str) -> NotARecording:
    if not holds_recorded_files(recording):
        inside = sorted(path.parent.name for path in islice(recording.glob(f"*/{MANIFEST}"), MOST_NAMED))
        held = f", but it holds {', '.join(inside)}" if inside else ""
        return NotARecording(recording, f"{why}{held}")
    _check(recording)
    return ManifestLost(recording, why)


@contextmanager
def edit_manifest(recording: Path) -> Iterator[Manifest]:
    """Change a manifest under a lock: the tablet's app and the recorder may both do so. Raises NotARecording."""
    with locked_folder(recording):
        manifest = read_manifest(recording)
        yield manifest
        write_json(recording / MANIFEST, manifest)


def note_change(recording: Path) -> None:
    """Update the change time of a manifest without changing its content or date. Raises OSError.

    Call it after writing below `sync/`, `annotations/` or to the copy log: the catalogue only checks the manifest. A
    recording without one is read each time.
    """
    with suppress(FileNotFoundError):
        facts = (recording / MANIFEST).stat()
        try:
            os.utime(recording / MANIFEST, ns=(facts.st_atime_ns, facts.st_mtime_ns))
        except PermissionError:  # a group member may only set the current time on a file of another owner
            os.utime(recording / MANIFEST)

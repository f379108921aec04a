"""Find the large files of a recording: in its own folder, or in a copy after they were freed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kitchensync.shell.untrusted_json import BadJson
from kitchensync.storage.copies.copy_log import folders_of, freed_to
from kitchensync.storage.copies.target import Target
from kitchensync.storage.errors import FilesFreed, NotARecording, TargetAway
from kitchensync.storage.manifest import Manifest, read_manifest
from kitchensync.storage.names import CHUNK_SUFFIX, MEDIA, chunk_range
from kitchensync.storage.recording_files.media_file import load_media


def promised_hashes(recording: Path, manifest: Manifest) -> dict[str, str]:
    """Return the original hash of each sealed file, constant and film, by its relative path."""
    return {name: facts["sha256"] for name, facts in promised_files(recording, manifest).items()}


def promised_files(recording: Path, manifest: Manifest) -> dict[str, Any]:
    """Return `sha256`, and `bytes` if known, of the same files."""
    films = {}
    for media in recording.glob(f"*/{MEDIA}"):
        with contextlib.suppress(BadJson, OSError):  # `verify` reports a damaged media.json
            for entry in load_media(media).get("files") or ():
                if entry.get("sha256"):
                    films[f"{media.parent.name}/{entry['file']}"] = entry
    return manifest["files"] | films


def missing_files(folder: Path, promised: Iterable[str]) -> list[str]:
    """Return the promised files that are missing in a folder, in order of name; chunks may be in an archive."""
    absent = (name for name in sorted(promised) if not (folder / name).is_file())
    return [name for name in absent if not _is_packed(folder / name)]


def _is_packed(chunk: Path) -> bool:
    numbers = chunk_range(chunk)
    if numbers is None:
        return False
    archives = (chunk_range(path) for path in chunk.parent.glob(f"*-*{CHUNK_SUFFIX}"))
    return any(packed and packed[0] <= numbers[0] and numbers[1] <= packed[1] for packed in archives)


def readable_folder(recording: Path, manifest: Manifest) -> Path:
    """Return the folder to read sealed files and films from.

    It is the recording's own, or that of a complete copy if files were freed, in a store of unchanged identity.
    Raises FilesFreed if no such copy is available.
    """
    if not freed_to(recording):
        return recording
    problems = []
    for line in folders_of(recording):
        copy = Path(line.where) / Path(os.path.abspath(recording)).name
        try:
            Target(Path(line.where), line.target)
            manifest_there = read_manifest(copy)
        except (TargetAway, NotARecording) as error:
            problems.append(str(error))
            continue
        if not is_same(manifest_there, manifest):
            problems.append(f"{copy}: is another recording")
        elif missing := missing_files(copy, promised_files(copy, manifest_there)):
            problems.append(f"{copy}: lacks {len(missing)} files, such as {missing[0]}")
        else:
            return copy
    raise FilesFreed(recording, problems)


def is_same(there: Manifest, manifest: Manifest) -> bool:
    """Return whether two manifests are of one recording: equal uuid, and a common file if there are any.

    The uuid alone can be forged. A manifest without a list of files, such as a tombstone, is not the same.
    """
    if there.get("uuid") != manifest.get("uuid") or not {"files"} <= there.keys() & manifest.keys():
        return False
    ours, theirs = (
        {(name, facts["sha256"]) for name, facts in form["files"].items()} for form in (manifest, there)
    )
    return not ours or bool(ours & theirs)

"""Where the large files of a recording can be read: in its own folder, or in a copy after they were freed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kitchensync.shell.untrusted_json import BadJson
from kitchensync.storage.copies.copy_log import CopyRecord, folders_of, freed_to
from kitchensync.storage.copies.target import Target
from kitchensync.storage.errors import FilesFreed, NotARecording, TargetAway
from kitchensync.storage.manifest import Manifest, read_manifest
from kitchensync.storage.names import CHUNK_SUFFIX, MEDIA, chunk_range
from kitchensync.storage.recording_files.media_file import load_media


def promised_hashes(recording: Path, manifest: Manifest) -> dict[str, str]:
    """Return the hash that each sealed file, each constant and each film was taken in with, by its path inside."""
    return {name: facts["sha256"] for name, facts in promised_files(recording, manifest).items()}


def promised_files(recording: Path, manifest: Manifest) -> dict[str, Any]:
    """Return `sha256`, and `bytes` where it is known, of the same files."""
    known = {}
    for media in recording.glob(f"*/{MEDIA}"):
        with contextlib.suppress(BadJson, OSError):  # verify names a damaged media.json
            for entry in load_media(media).get("files") or ():
                if entry.get("sha256"):
                    known[f"{media.parent.name}/{entry['file']}"] = entry
    return manifest["files"] | known


def missing_files(folder: Path, promised: Iterable[str]) -> list[str]:
    """Return which promised files are not in a folder, in order of name; an archive stands for its chunks."""
    absent = (name for name in sorted(promised) if not (folder / name).is_file())
    return [name for name in absent if not _is_packed(folder / name)]


def _is_packed(chunk: Path) -> bool:
    numbers = chunk_range(chunk)
    if numbers is None:
        return False
    archives = (chunk_range(path) for path in chunk.parent.glob(f"*-*{CHUNK_SUFFIX}"))
    return any(held and held[0] <= numbers[0] and numbers[1] <= held[1] for held in archives)


def readable_folder(recording: Path, manifest: Manifest) -> Path:
    """Return the folder to read sealed files and films from.

    It is the recording's own, or that of a whole copy where files were freed: a store that is another one than when
    the copy was made does not count. Raises FilesFreed when there is no such copy now.
    """
    if not freed_to(recording):
        return recording
    problems = []
    for line in folders_of(recording):
        problem, copy = _copy_in(line, recording, manifest)
        if not problem:
            return copy
        problems.append(problem)
    raise FilesFreed(recording, problems)


def _copy_in(line: CopyRecord, recording: Path, manifest: Manifest) -> tuple[str, Path]:
    """Return what is wrong with the copy in a store (nothing: it is whole), and its folder."""
    copy = Path(line.where) / Path(os.path.abspath(recording)).name
    try:
        Target(Path(line.where), line.target)
        there = read_manifest(copy)
    except (TargetAway, NotARecording) as error:
        return str(error), copy
    if not is_same(there, manifest):
        return f"{copy}: is another recording", copy
    missing = missing_files(copy, promised_files(copy, there))
    return (f"{copy}: lacks {len(missing)} files, such as {missing[0]}" if missing else ""), copy


def is_same(there: Manifest, manifest: Manifest) -> bool:
    """Return whether two manifests are of one recording: by its uuid, and by a file that both have, if they have any.

    A uuid alone proves nothing: anybody can write one. One without a list of files, such as a tombstone, is none.
    """
    if there.get("uuid") != manifest.get("uuid") or not {"files"} <= there.keys() & manifest.keys():
        return False
    ours, theirs = (
        {(name, facts["sha256"]) for name, facts in one["files"].items()} for one in (manifest, there)
    )
    return not ours or bool(ours & theirs)

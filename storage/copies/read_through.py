"""Where the large files of a recording can be read: in its own folder, or in a copy after they were freed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from storage.copies.copies import CopyRecord, freed_to, read_book
from storage.copies.promised import missing_files
from storage.copies.target import Target
from storage.errors import FilesFreed, NotARecording, TargetAway
from storage.manifest import Manifest, read_manifest


def readable_folder(recording: Path, manifest: Manifest) -> Path:
    """Return the folder to read sealed files and films from.

    It is the recording's own, or that of a whole copy where files were freed: a store that is another one than when
    the copy was made does not count. Raises FilesFreed when there is no such copy now.
    """
    if not freed_to(recording):
        return recording
    problems = []
    for line in stores_of(recording):
        problem, copy = _copy_in(line, recording, manifest)
        if not problem:
            return copy
        problems.append(problem)
    raise FilesFreed(recording, problems)


def stores_of(recording: Path) -> Iterator[CopyRecord]:
    """Yield a line of each store that has copies, the last one first; stores of the cloud are for `upload`."""
    lines = (line for line in reversed(read_book(recording)) if "://" not in line.where)
    yield from {(line.target, line.where): line for line in lines}.values()


def _copy_in(line: CopyRecord, recording: Path, manifest: Manifest) -> tuple[str, Path]:
    """Return what is wrong with the copy in a store (nothing: it is whole), and its folder."""
    copy = Path(line.where) / Path(os.path.abspath(recording)).name
    try:
        Target(Path(line.where), line.target)
        there = read_manifest(copy)
    except (TargetAway, NotARecording) as error:
        return str(error), copy
    if there.get("uuid") != manifest.get("uuid"):
        return f"{copy}: is another recording", copy
    missing = missing_files(copy, there)
    return (f"{copy}: lacks {len(missing)} files, such as {missing[0]}" if missing else ""), copy

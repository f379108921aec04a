"""The files of a recording to copy, in order, with their expected size and hash."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kitchensync.shell.files_on_disk import files_below
from kitchensync.storage.chunks.chunk_reader import chunk_paths, is_archive
from kitchensync.storage.copies.copy_log import COPY_LOG, CopyRecord
from kitchensync.storage.copies.read_through import promised_files, readable_folder
from kitchensync.storage.errors import SourceDiffers
from kitchensync.storage.manifest import Manifest
from kitchensync.storage.names import CHUNK_SUFFIX, DERIVED, MANIFEST, PART_SUFFIX, STORES, chunk_range

MOST_CHUNK_BYTES = 1 << 30
"""Limit for a chunk of unknown size; chunks are sealed at 64 MB."""


@dataclass(frozen=True)
class FileToCopy:
    """One file to copy, with its expected hash, and its source, which is a copy if the file was freed."""

    relative: str
    expected: str | None
    source: Path
    bytes: int | None = None
    "Its expected size, if known."

    def check_size(self) -> None:
        """Refuse a file of an unexpected size before it is read. Raises SourceDiffers."""
        size, is_chunk = self.source.stat().st_size, self.source.suffix == CHUNK_SUFFIX
        is_too_large = is_chunk and not is_archive(self.source) and size > MOST_CHUNK_BYTES
        if self.bytes not in (None, size) or is_too_large:
            raise SourceDiffers(self.source)


def is_closed(manifest: Manifest) -> bool:
    """Return whether a recording is finished."""
    return manifest["state"] in ("complete", "aborted")


def files_of(recording: Path, manifest: Manifest) -> list[FileToCopy]:
    """List the files to copy now, in order: sealed files, and all others once the recording is closed.

    The manifest is last; until then the manifest of the copy has COPYING. Raises FilesFreed.
    """
    if not is_closed(manifest):
        return [FileToCopy(path.relative_to(recording).as_posix(), None, path) for path in _sealed(recording)]
    places = _closed(recording)
    copy = readable_folder(recording, manifest)
    if copy != recording:
        places = {path: place for path, place in _closed(copy).items() if is_heavy(path)} | places
    promised = promised_files(recording, manifest)
    places[MANIFEST] = recording / MANIFEST
    facts = ((path, place, promised.get(path, {})) for path, place in places.items())
    return [
        FileToCopy(path, promise.get("sha256"), place, promise.get("bytes")) for path, place, promise in facts
    ]


def _sealed(folder: Path) -> list[Path]:
    folders = sorted({path.parent for path in folder.rglob(f"*{CHUNK_SUFFIX}")})
    return [path for folder in folders for path in chunk_paths(folder)]


def _closed(folder: Path) -> dict[str, Path]:
    """Return relative path -> path of all files of a closed recording except its manifest."""
    others = [
        path
        for path in sorted(files_below(folder))
        if not any(name.endswith(PART_SUFFIX) for name in path.relative_to(folder).parts)
        and chunk_range(path) is None
        and path not in {folder / name for name in (MANIFEST, COPY_LOG, STORES, DERIVED)}
    ]
    return {path.relative_to(folder).as_posix(): path for path in [*_sealed(folder), *others]}


def is_as_sent(item: FileToCopy | None, line: CopyRecord | None, recording: Path) -> bool:
    """Return whether a file of a recording is unchanged since it was sent, by its line in the list of copies."""
    if item is None or line is None:
        return False
    facts = item.source.stat()
    is_here = item.source == recording / item.relative  # a copy has another time
    return (
        line.bytes == facts.st_size
        and (not is_here or line.mtime_ns == facts.st_mtime_ns)
        and item.expected in (None, line.sha256)
    )


def is_heavy(relative: str) -> bool:
    """Return whether a file may be freed: sealed files and films. Manifest, constants, events and reports stay."""
    path = Path(relative)
    return chunk_range(path) is not None or path.suffix.lower() == ".mp4"

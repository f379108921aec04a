"""What of a recording is to be copied elsewhere, in which order, and what each file must be."""

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
"""Of a chunk whose size the manifest does not have; they are sealed at 64 MB."""


@dataclass(frozen=True)
class FileToCopy:
    """One file to copy, what it must be, and where it is read: from a copy where it was freed."""

    relative: str
    expected: str | None
    source: Path
    bytes: int | None = None
    "What its size must be, where that is known."

    def check_size(self) -> None:
        """Refuse a file of another size than it was sealed with, before all of it is read. Raises SourceDiffers."""
        size, is_chunk = self.source.stat().st_size, self.source.suffix == CHUNK_SUFFIX
        is_too_large = is_chunk and not is_archive(self.source) and size > MOST_CHUNK_BYTES
        if self.bytes not in (None, size) or is_too_large:
            raise SourceDiffers(self.source)


def is_closed(manifest: Manifest) -> bool:
    """Return whether nothing more will come into a recording."""
    return manifest["state"] in ("complete", "aborted")


def files_of(recording: Path, manifest: Manifest) -> list[FileToCopy]:
    """List what is to be copied now, in order: sealed files as they come, all the rest once it is closed.

    The manifest comes last: until then the copy has one that says COPYING. Raises FilesFreed.
    """
    if not is_closed(manifest):
        return [FileToCopy(path.relative_to(recording).as_posix(), None, path) for path in _sealed(recording)]
    found = _closed(recording)
    copy = readable_folder(recording, manifest)
    if copy != recording:
        found = {path: place for path, place in _closed(copy).items() if is_heavy(path)} | found
    known = promised_files(recording, manifest)
    found[MANIFEST] = recording / MANIFEST
    facts = ((path, place, known.get(path, {})) for path, place in found.items())
    return [FileToCopy(path, one.get("sha256"), place, one.get("bytes")) for path, place, one in facts]


def _sealed(folder: Path) -> list[Path]:
    folders = sorted({path.parent for path in folder.rglob(f"*{CHUNK_SUFFIX}")})
    return [path for folder in folders for path in chunk_paths(folder)]


def _closed(folder: Path) -> dict[str, Path]:
    """Map all that lies in the folder of a closed recording, but its manifest, to its place."""
    others = [
        path
        for path in sorted(files_below(folder))
        if not any(name.endswith(PART_SUFFIX) for name in path.relative_to(folder).parts)
        and chunk_range(path) is None
        and path not in {folder / name for name in (MANIFEST, COPY_LOG, STORES, DERIVED)}
    ]
    return {path.relative_to(folder).as_posix(): path for path in [*_sealed(folder), *others]}


def is_as_sent(item: FileToCopy | None, line: CopyRecord | None, recording: Path) -> bool:
    """Return whether a file of a recording is still what a line of the list of copies says was sent."""
    if item is None or line is None:
        return False
    facts = item.source.stat()
    is_here = item.source == recording / item.relative  # a copy has a time of its own
    return (
        line.bytes == facts.st_size
        and (not is_here or line.mtime_ns == facts.st_mtime_ns)
        and item.expected in (None, line.sha256)
    )


def is_heavy(relative: str) -> bool:
    """Report what is freed: sealed files and films. Manifest, constants, events and reports are small and stay."""
    path = Path(relative)
    return chunk_range(path) is not None or path.suffix.lower() == ".mp4"

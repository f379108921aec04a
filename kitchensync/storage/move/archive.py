"""Pack the chunks of a finished stream into one HDF5 file with the same packets, verified block by block.

Network stores are slow with half a million small files. The archive is written beside the chunks, synced, read back
past the page cache and compared; only then are the chunks removed. Each step may be interrupted: the files are
readable at any time, and another run continues.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kitchensync.shell.files_on_disk import file_sha256, sync_path
from kitchensync.storage.chunks.archive_file import prove, write_archive
from kitchensync.storage.chunks.chunk_reader import chunk_paths, is_archive
from kitchensync.storage.copies.copy_log import freed_to
from kitchensync.storage.disk.durable import LOCAL, Disk
from kitchensync.storage.errors import BadChunk, NotPackable
from kitchensync.storage.life import usable_manifest
from kitchensync.storage.manifest import Manifest, edit_manifest, read_manifest
from kitchensync.storage.names import PART_SUFFIX, archive_name, chunk_number, chunk_range, stream_folder

if TYPE_CHECKING:
    from kitchensync.storage.manifest_form import FileFactsForm

SPARE_BYTES = 256 << 20
"""Required free space in addition to the archive."""

PASSES = 3
"""Every chunk is read to survey it, to copy it and to verify the copy."""

Progress = Callable[[str, int, int], None]
"""Stream, processed bytes of its chunks, total bytes (both counted for every pass)."""


@dataclass(frozen=True)
class Packed:
    """Result for one stream."""

    stream: str
    files: int
    archive: str
    bytes: int


def archive(recording: Path, progress: Progress = lambda *_: None, disk: Disk = LOCAL) -> list[Packed]:
    """Pack every stream of a finished recording; chunks are removed only after verification. Raises StorageError."""
    manifest = usable_manifest(recording)
    if freed_to(recording):
        raise NotPackable(recording, "its files were freed; archive a copy of it in its store")
    if manifest["state"] not in ("complete", "aborted"):
        raise NotPackable(recording, f"it is not finished (state {manifest['state']!r})")
    packed = [archive_stream(recording, stream, disk, progress) for stream in streams_with_files(manifest)]
    return [result for result in packed if result is not None]


def streams_with_files(manifest: Manifest) -> list[str]:
    """Return every stream with sealed files, including those of clock and ledger."""
    return sorted({name.rpartition("/")[0] for name in manifest["files"] if chunk_range(Path(name))})


def archive_stream(
    recording: Path, stream: str, disk: Disk = LOCAL, progress: Progress = lambda *_: None
) -> Packed | None:
    """Pack one stream; return None if there is nothing to pack."""
    folder = stream_folder(recording, stream)
    for part in folder.glob(f"*{PART_SUFFIX}"):
        disk.remove(part)
    _finish_earlier(recording, stream, folder, disk)
    chunks = [path for path in chunk_paths(folder) if not is_archive(path)]
    if len(chunks) < 2:
        return None
    _check_hashes(recording, stream, chunks)
    size = sum(path.stat().st_size for path in chunks)
    needed = size + SPARE_BYTES
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise NotPackable(folder, f"needs {needed / 1e6:.0f} MB for a moment, {free / 1e6:.0f} MB are free")
    done = [0]

    def tell(chunk: Path) -> None:
        done[0] += chunk.stat().st_size
        progress(stream, done[0], PASSES * size)

    numbers = [chunk_number(path) or 0 for path in chunks]
    path = folder / archive_name(numbers[0], numbers[-1])
    part = path.with_name(path.name + PART_SUFFIX)
    try:
        write_archive(part, chunks, tell)
        sync_path(part)
        # proved before it has the name under which readers take it for the chunks
        prove(part, chunks, tell)
        disk.rename(part, path)
    except OSError as error:
        raise NotPackable(recording, f"{stream}: {error}") from error
    finally:
        disk.remove(part)
    disk.sync_folder(folder)
    _replace(recording, stream, path, chunks, disk)
    return Packed(stream, len(chunks), path.name, path.stat().st_size)


def _finish_earlier(recording: Path, stream: str, folder: Path, disk: Disk) -> None:
    """Continue an interrupted run: remove chunks that are in an archive."""
    for path in [path for path in chunk_paths(folder) if is_archive(path)]:
        first, last = chunk_range(path) or (0, 0)
        remaining = [
            chunk
            for chunk in sorted(folder.glob("*.h5"))
            if not is_archive(chunk) and first <= (chunk_number(chunk) or 0) <= last
        ]
        relative = f"{stream}/{path.name}"
        if remaining or relative not in read_manifest(recording)["files"]:
            prove(path, remaining)
            _replace(recording, stream, path, remaining, disk)


def _check_hashes(recording: Path, stream: str, chunks: list[Path]) -> None:
    """Refuse to pack damaged chunks, so that damage is found in its own file."""
    files = read_manifest(recording)["files"]
    for path in chunks:
        facts = files.get(f"{stream}/{path.name}")
        size = path.stat().st_size
        if facts and (size != facts.get("bytes", size) or file_sha256(path) != facts["sha256"]):
            raise BadChunk(path, "its size or hash is not the one it was sealed with")


def _replace(recording: Path, stream: str, path: Path, chunks: list[Path], disk: Disk) -> None:
    """Write the archive into the books in place of its chunks, then remove them."""
    first, last = chunk_range(path) or (0, 0)
    facts: FileFactsForm = {"bytes": path.stat().st_size, "sha256": file_sha256(path)}
    # the manifest first: chunks that an interruption leaves are removed by the next run
    with edit_manifest(recording) as manifest:
        manifest["files"] = {
            name: entry
            for name, entry in manifest["files"].items()
            if name.rpartition("/")[0] != stream
            or is_archive(Path(name))
            or not first <= (chunk_number(Path(name)) or 0) <= last
        } | {f"{stream}/{path.name}": facts}
    for chunk in chunks:
        disk.remove(chunk)
    disk.sync_folder(path.parent)

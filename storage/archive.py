"""Pack the chunks of a finished stream into one HDF5 file: the same packets, proved block by block.

Half a million small files hurt a network store. The archive is written beside the chunks, synced, read back
past the page cache and compared with them; only then are they removed. Each step may be interrupted: what
lies on the disk is readable at any moment, and another run goes on.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from storage.chunk import chunk_paths, describe_file, is_archive, set_attribute
from storage.chunk_format import ARCHIVE, BLOCKS
from storage.chunk_reader import READ_STEP_BYTES, UNREADABLE, Chunk
from storage.compress import create_compressed, read_frame, write_frame
from storage.disk import LOCAL, Disk
from storage.errors import BadChunk, NotPackable
from storage.layout import FRAMES, RECORDS, Blob, Frames, Records
from storage.manifest import edit_manifest, read_manifest
from storage.names import PART_SUFFIX, archive_name, chunk_number, chunk_range, stream_folder
from storage.read_back import file_sha256, forget_cache

SPARE_BYTES = 256 << 20
"""Free space that must stay beside an archive while its chunks are still there."""

Progress = Callable[[str], None]
OWN_ATTRIBUTES = {
    *("schema", "kind", "layout", "count", "first_seq", "last_seq", "payload_bytes", "index_crc32"),
    *("pose_crc32", "device_tick_hz", "host_clock"),
}


@dataclass(frozen=True)
class Packed:
    """What became of one stream."""

    stream: str
    files: int
    archive: str
    bytes: int


def archive(recording: Path, progress: Progress = lambda _: None, disk: Disk = LOCAL) -> list[Packed]:
    """Pack every stream of a finished recording. Raises StorageError; nothing is removed that is not proved."""
    manifest = read_manifest(recording)
    if manifest["state"] not in ("complete", "aborted"):
        raise NotPackable(recording, f"it is not finished (state {manifest['state']!r})")
    done = []
    for stream in streams_with_files(manifest):
        progress(stream)
        packed = archive_stream(recording, stream, disk)
        if packed is not None:
            done.append(packed)
    return done


def streams_with_files(manifest: dict[str, Any]) -> list[str]:
    """Return every stream that has sealed files, those of clock and ledger included."""
    return sorted({name.rpartition("/")[0] for name in manifest["files"] if name.endswith(".h5")})


def archive_stream(recording: Path, stream: str, disk: Disk = LOCAL) -> Packed | None:
    """Pack one stream; return None when there is nothing to pack."""
    folder = stream_folder(recording, stream)
    for part in folder.glob(f"*{PART_SUFFIX}"):
        disk.remove(part)
    _finish_earlier(recording, stream, folder, disk)
    chunks = [path for path in chunk_paths(folder) if not is_archive(path)]
    if len(chunks) < 2:
        return None
    _check_hashes(recording, stream, chunks)
    _check_room(folder, chunks)
    numbers = [chunk_number(path) or 0 for path in chunks]
    path = folder / archive_name(numbers[0], numbers[-1])
    part = path.with_name(path.name + PART_SUFFIX)
    try:
        _write_archive(part, chunks)
        _sync(part)
        _prove(part, chunks)
        disk.rename(part, path)
    except OSError as error:
        raise NotPackable(recording, f"{stream}: {error}") from error
    finally:
        disk.remove(part)
    disk.sync_folder(folder)
    _replace(recording, stream, path, chunks, disk)
    return Packed(stream, len(chunks), path.name, path.stat().st_size)


def _finish_earlier(recording: Path, stream: str, folder: Path, disk: Disk) -> None:
    """Go on where an earlier run was interrupted: archive in place, chunks not yet removed."""
    for path in [path for path in chunk_paths(folder) if is_archive(path)]:
        first, last = chunk_range(path) or (0, 0)
        left = [
            chunk
            for chunk in sorted(folder.glob("*.h5"))
            if not is_archive(chunk) and first <= (chunk_number(chunk) or 0) <= last
        ]
        relative = f"{stream}/{path.name}"
        if left or relative not in read_manifest(recording)["files"]:
            _prove(path, left)
            _replace(recording, stream, path, left, disk)


def _check_hashes(recording: Path, stream: str, chunks: list[Path]) -> None:
    """Refuse to pack what is not what was sealed: damage must be found in its own file."""
    files = read_manifest(recording)["files"]
    for path in chunks:
        facts = files.get(f"{stream}/{path.name}")
        if facts is not None and file_sha256(path) != facts["sha256"]:
            raise BadChunk(path, "its hash is not the one it was sealed with")


def _check_room(folder: Path, chunks: list[Path]) -> None:
    needed = sum(path.stat().st_size for path in chunks) + SPARE_BYTES
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise NotPackable(folder, f"needs {needed / 1e6:.0f} MB for a moment, {free / 1e6:.0f} MB are free")


@dataclass
class _Tables:
    """What is known of all chunks before the archive is written."""

    index: npt.NDArray[np.void]
    blocks: npt.NDArray[np.void]
    poses: npt.NDArray[np.float32] | None
    layout: Blob | Records | Frames
    attributes: dict[str, Any]
    compressed: bool


def _survey(chunks: list[Path]) -> _Tables:
    """Read index, poses and constants of all chunks, and the hash of every block."""
    blocks = np.zeros(len(chunks), BLOCKS)
    indexes, poses, kinds, row, offset = [], [], [], 0, 0
    attributes: dict[str, Any] = {}
    for number, path in enumerate(chunks):
        digest = hashlib.sha256()
        with Chunk(path) as chunk:
            if damage := chunk.damage(digest.update):
                raise BadChunk(path, ", ".join(damage))
            index = chunk.index.copy()
            poses.append(chunk.poses)
            kinds.append(_layout(chunk))
            attributes |= chunk.attributes
        index["offset"] += offset
        offset += int(index["size"].sum(dtype=np.uint64))
        rows = len(index)
        sealed = (chunk_number(path), row, rows, path.stat().st_size, file_sha256(path), digest.hexdigest())
        blocks[number] = sealed
        row += rows
        indexes.append(index)
    whole = [pose for pose in poses if pose is not None]
    same = all(kind == kinds[0] for kind in kinds)
    return _Tables(
        np.concatenate(indexes),
        blocks,
        np.concatenate(whole).reshape(-1, 16) if len(whole) == len(chunks) else None,
        kinds[0][0] if same else Blob(),
        {name: value for name, value in attributes.items() if name not in OWN_ATTRIBUTES},
        kinds[0][1] if same else False,
    )


def _layout(chunk: Chunk) -> tuple[Blob | Records | Frames, bool]:
    """Return the layout of a file and whether its pictures are compressed."""
    if chunk.layout == RECORDS:
        return Records(chunk.dataset("records").dtype), False
    if chunk.layout == FRAMES:
        frames = chunk.dataset("frames")
        frame = np.dtype((frames.dtype, frames.shape[1:]))
        kind = Frames(chunk.dataset("head").dtype, frame, chunk.dataset("tail").dtype)
        return kind, frames.compression is not None
    return Blob(), False


def _write_archive(part: Path, chunks: list[Path]) -> None:
    tables = _survey(chunks)
    with h5py.File(part, "w") as file:
        if isinstance(tables.layout, Frames):
            _write_frames(file, chunks, tables.layout, len(tables.index), tables.compressed)
        else:
            _write_stretch(file, chunks, tables)
        file.create_dataset("index", data=tables.index)
        file.attrs["index_crc32"] = zlib.crc32(tables.index.tobytes())
        if tables.poses is not None:
            file.create_dataset("pose", data=tables.poses)
            file.attrs["pose_crc32"] = zlib.crc32(tables.poses.tobytes())
        file.create_dataset("blocks", data=tables.blocks)
        describe_file(file.attrs, ARCHIVE, tables.layout, tables.index)
        for name, value in tables.attributes.items():
            set_attribute(file.attrs, name, value)


def _write_frames(file: h5py.File, chunks: list[Path], layout: Frames, count: int, compressed: bool) -> None:
    """Copy pictures as they lie in the chunks: what is compressed is not compressed again."""
    head = file.create_dataset("head", (count,), layout.head)
    tail = file.create_dataset("tail", (count,), layout.tail)
    if compressed:
        frames = create_compressed(file, "frames", count, layout.frame)
    else:
        frames = file.create_dataset("frames", (count, *layout.frame.shape), layout.frame.base)
    row = 0
    for path in chunks:
        with Chunk(path) as chunk:
            rows = len(chunk.index)
            head[row : row + rows], tail[row : row + rows] = (
                chunk.dataset("head")[:],
                chunk.dataset("tail")[:],
            )
            source = chunk.dataset("frames")
            for number in range(rows):
                if compressed:
                    write_frame(frames, row + number, read_frame(source, number))
                else:
                    frames[row + number] = source[number]
            row += rows


def _write_stretch(file: h5py.File, chunks: list[Path], tables: _Tables) -> None:
    record = tables.layout.record if isinstance(tables.layout, Records) else np.dtype(np.uint8)
    size = int(tables.index["size"].sum(dtype=np.uint64))
    name = RECORDS if isinstance(tables.layout, Records) else "data"
    target = file.create_dataset(name, (size // record.itemsize,), record)
    at = 0
    for piece in _stretches(chunks):
        target[at : at + len(piece) // record.itemsize] = np.frombuffer(piece, record)
        at += len(piece) // record.itemsize


def _stretches(chunks: list[Path]) -> Iterator[bytes]:
    """Yield all payloads joined to pieces of some megabytes; a piece ends with a packet."""
    for path in chunks:
        with Chunk(path) as chunk:
            waiting: list[bytes] = []
            size = 0
            for payload in chunk.payloads():
                waiting.append(payload)
                size += len(payload)
                if size >= READ_STEP_BYTES:
                    yield b"".join(waiting)
                    waiting, size = [], 0
            if waiting:
                yield b"".join(waiting)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _prove(path: Path, chunks: list[Path]) -> None:
    """Read the archive back past the page cache: every block must be what was sealed. Raises BadChunk."""
    forget_cache(path)
    originals = {chunk_number(chunk): chunk for chunk in chunks}
    try:
        with Chunk(path) as packed:
            if damage := packed.damage():
                raise BadChunk(path, ", ".join(damage))
            poses = packed.poses
            for block in packed.blocks:
                first, last = int(block["first_row"]), int(block["first_row"]) + int(block["rows"])
                digest = hashlib.sha256()
                for payload in packed.payloads(first, last):
                    digest.update(payload)
                if digest.hexdigest() != block["payload_sha256"].decode():
                    raise BadChunk(path, f"block {block['number']} is not what was sealed")
                if original := originals.get(int(block["number"])):
                    part = None if poses is None else poses[first:last]
                    _same_rows(path, packed.index[first:last], part, block, original)
    except UNREADABLE as error:
        raise BadChunk(path, str(error)) from error


def _same_rows(path: Path, rows: npt.NDArray[np.void], poses: Any, block: Any, original: Path) -> None:
    """Compare file hash, index and poses of one block with the chunk that is still there."""
    if file_sha256(original) != block["file_sha256"].decode():
        raise BadChunk(original, f"it is not the file that {path.name} was packed from")
    with Chunk(original) as chunk:
        moved = chunk.index.copy()
        if len(moved):
            moved["offset"] += rows["offset"][0] - moved["offset"][0]
        same_poses = poses is None or (chunk.poses is not None and np.array_equal(poses, chunk.poses))
        if rows.tobytes() != moved.tobytes() or not same_poses:
            raise BadChunk(path, f"block {block['number']} has not the index or poses that were sealed")


def _replace(recording: Path, stream: str, path: Path, chunks: list[Path], disk: Disk) -> None:
    """Write the archive into the books in place of its chunks, then remove them."""
    first, last = chunk_range(path) or (0, 0)
    facts = {"bytes": path.stat().st_size, "sha256": file_sha256(path)}
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

"""Write archives from the chunks of a stream, rewrite them without some chunks, and verify them.

Records are compressed; compressed pictures are copied unchanged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from kitchensync.shell.files_on_disk import file_sha256
from kitchensync.storage.chunks.chunk_reader import READ_STEP_BYTES, UNREADABLE, Chunk
from kitchensync.storage.chunks.chunk_writer import describe_file, set_attribute
from kitchensync.storage.chunks.compress import (
    create_compressed,
    create_records,
    put_frame,
    read_frame,
    write_frame,
)
from kitchensync.storage.chunks.layout import ARCHIVE, BLOCKS, FRAMES, RECORDS, Blob, Frames, RecordLayout
from kitchensync.storage.disk.checksum import crc32
from kitchensync.storage.disk.read_back import forget_cache
from kitchensync.storage.errors import BadChunk
from kitchensync.storage.names import chunk_number

Tell = Callable[[Path], None]
"""Called after every processed chunk."""

OWN_ATTRIBUTES = {
    *("schema", "kind", "layout", "count", "first_seq", "last_seq", "payload_bytes", "index_crc32"),
    *("pose_crc32", "device_tick_hz", "host_clock"),
}


@dataclass
class _Tables:
    """Tables of all chunks for the archive."""

    index: npt.NDArray[np.void]
    blocks: npt.NDArray[np.void]
    poses: npt.NDArray[np.float32] | None
    layout: Blob | RecordLayout | Frames
    attributes: dict[str, Any]
    compressed: bool


def _survey(chunks: list[Path], tell: Tell) -> _Tables:
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
            kinds.append(layout_in(chunk))
            attributes |= chunk.attributes
        index["offset"] += offset
        offset += int(index["size"].sum(dtype=np.uint64))
        rows = len(index)
        sealed = (chunk_number(path), row, rows, path.stat().st_size, file_sha256(path), digest.hexdigest())
        blocks[number] = sealed
        row += rows
        indexes.append(index)
        tell(path)
    whole = [pose for pose in poses if pose is not None]
    same = all(layout == kinds[0][0] for layout, _ in kinds)
    return _Tables(
        np.concatenate(indexes),
        blocks,
        np.concatenate(whole).reshape(-1, 16) if len(whole) == len(chunks) else None,
        kinds[0][0] if same else Blob(),
        attributes,
        same and any(compressed for _, compressed in kinds),
    )


def layout_in(chunk: Chunk) -> tuple[Blob | RecordLayout | Frames, bool]:
    """Return the layout of a file and whether its pictures are compressed."""
    if chunk.layout == RECORDS:
        return RecordLayout(chunk.dataset(RECORDS).dtype), False
    if chunk.layout == FRAMES:
        frames = chunk.dataset("frames")
        frame = np.dtype((frames.dtype, frames.shape[1:]))
        kind = Frames(chunk.dataset("head").dtype, frame, chunk.dataset("tail").dtype)
        return kind, frames.compression is not None
    return Blob(), False


def write_archive(part: Path, chunks: list[Path], tell: Tell = lambda _: None) -> None:
    """Write all packets of some chunks into one new file, not yet synced. Raises BadChunk, OSError."""
    tables = _survey(chunks, tell)
    with h5py.File(part, "w", locking=False) as file:
        if isinstance(tables.layout, Frames):
            _write_frames(file, chunks, tables, tables.layout, tell)
        else:
            target = create_stretch(file, tables.layout, tables.index)
            record = target.dtype
            at = 0
            for piece in _stretches(chunks, tell):
                target[at : at + len(piece) // record.itemsize] = np.frombuffer(piece, record)
                at += len(piece) // record.itemsize
        _describe(file, tables)


def _describe(file: h5py.File, tables: _Tables) -> None:
    """Write everything of an archive except its payloads."""
    file.create_dataset("index", data=tables.index)
    file.attrs["index_crc32"] = crc32(tables.index.tobytes())
    if tables.poses is not None:
        file.create_dataset("pose", data=tables.poses)
        file.attrs["pose_crc32"] = crc32(tables.poses.tobytes())
    file.create_dataset("blocks", data=tables.blocks)
    describe_file(file.attrs, ARCHIVE, tables.layout, tables.index)
    for name, value in tables.attributes.items():
        if name not in OWN_ATTRIBUTES:
            set_attribute(file.attrs, name, value)


def _write_frames(file: h5py.File, chunks: list[Path], tables: _Tables, layout: Frames, tell: Tell) -> None:
    """Copy pictures of the chunks, compressed ones unchanged; uncompressed ones of hurried chunks are compressed."""
    count, compressed = len(tables.index), tables.compressed
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
                if compressed and source.compression is not None:
                    write_frame(frames, row + number, read_frame(source, number))
                elif compressed:
                    put_frame(frames, row + number, source[number].data.cast("B"))
                else:
                    frames[row + number] = source[number]
            row += rows
        tell(path)


def create_stretch(file: h5py.File, layout: Blob | RecordLayout, index: npt.NDArray[np.void]) -> h5py.Dataset:
    """Create the empty dataset for the payloads of an index; records are compressed."""
    size = int(index["size"].sum(dtype=np.uint64))
    if isinstance(layout, Blob):
        return file.create_dataset("data", (size,), np.uint8)
    return create_records(file, RECORDS, size // layout.record.itemsize, layout.record)


def _stretches(chunks: list[Path], tell: Tell) -> Iterator[bytes]:
    """Yield all payloads, joined to pieces of several megabytes that end with a packet."""
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
        tell(path)


def write_without(part: Path, archive: Path, numbers: set[int]) -> None:
    """Write `archive` without the blocks of these chunks into a new file, not synced. Raises BadChunk, OSError."""
    with Chunk(archive) as old, h5py.File(part, "w", locking=False) as file:
        blocks = old.blocks[~np.isin(old.blocks["number"], sorted(numbers))]
        spans = [(int(block["first_row"]), int(block["first_row"] + block["rows"])) for block in blocks]
        rows = np.concatenate([np.arange(*span) for span in spans])
        index, poses = old.index[rows], old.poses
        sizes = index["size"].astype(np.uint64)
        index["offset"] = np.cumsum(sizes) - sizes
        blocks["first_row"] = np.cumsum(blocks["rows"]) - blocks["rows"]
        layout, compressed = layout_in(old)
        if isinstance(layout, Frames):
            source = old.dataset("frames")
            for name in ("head", "tail"):
                file.create_dataset(name, data=old.dataset(name)[:][rows])
            if compressed:
                frames = create_compressed(file, "frames", len(rows), layout.frame)
            else:
                frames = file.create_dataset("frames", (len(rows), *layout.frame.shape), layout.frame.base)
            for place, row in enumerate(rows.tolist()):
                if compressed:
                    write_frame(frames, place, read_frame(source, row))
                else:
                    frames[place] = source[row]
        else:
            target = create_stretch(file, layout, index)
            record, at = target.dtype, 0
            for payload in (payload for span in spans for payload in old.payloads(*span)):
                count = len(payload) // record.itemsize
                target[at : at + count] = np.frombuffer(payload, record)
                at += count
        kept = None if poses is None else poses[rows].reshape(-1, 16)
        _describe(file, _Tables(index, blocks, kept, layout, old.attributes, compressed))


def prove(path: Path, chunks: list[Path], tell: Tell = lambda _: None) -> None:
    """Read the archive back past the page cache and compare every block with the seal. Raises BadChunk."""
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
                    tell(original)
    except UNREADABLE as error:
        raise BadChunk(path, str(error)) from error


def _same_rows(path: Path, rows: npt.NDArray[np.void], poses: Any, block: Any, original: Path) -> None:
    """Compare file hash, index and poses of one block with its chunk."""
    if file_sha256(original) != block["file_sha256"].decode():
        raise BadChunk(original, f"it is not the file that {path.name} was packed from")
    with Chunk(original) as chunk:
        moved = chunk.index.copy()
        if len(moved):
            moved["offset"] += rows["offset"][0] - moved["offset"][0]
        same_poses = poses is None or (chunk.poses is not None and np.array_equal(poses, chunk.poses))
        if rows.tobytes() != moved.tobytes() or not same_poses:
            raise BadChunk(path, f"block {block['number']} has not the index or poses that were sealed")

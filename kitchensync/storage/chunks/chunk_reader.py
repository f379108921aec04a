"""Open a sealed chunk, or an archive of many chunks, for reading."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from kitchensync.shell.files_on_disk import NotPlainFile
from kitchensync.storage.chunks.layout import (
    ARCHIVE,
    BLOB,
    BLOCKS,
    FRAMES,
    INDEX,
    POSE_FLOATS,
    RECORDS,
    SCHEMA,
)
from kitchensync.storage.chunks.own_datasets import open_hdf5, own_dataset, whole_table
from kitchensync.storage.disk.checksum import crc32
from kitchensync.storage.errors import BadChunk
from kitchensync.storage.names import CHUNK_SUFFIX, chunk_number, chunk_range

READ_STEP_BYTES = 8 << 20
MOST_PACKET_BYTES = 256 << 20
MOST_ATTRIBUTE_BYTES = 1 << 20
ROWS_AT_ONCE = 256
"""Number of small payloads of a compressed file that are read together."""
DAMAGED = "its content does not match its checksum: `kitchensync verify` says what to do"
NUMBERS = (h5py.h5t.TypeIntegerID, h5py.h5t.TypeFloatID)
INDEX_TYPE = h5py.h5t.py_create(INDEX)
UNREADABLE = (OSError, RuntimeError, KeyError, ValueError, TypeError, AttributeError)
"""Errors of HDF5 and NumPy for a file with a damaged structure."""


class Payloads:
    """The payloads of a file, for any layout; offsets count as if the payloads were contiguous."""

    def __init__(self, file: h5py.File, path: Path, layout: str) -> None:
        self._layout = layout
        if layout == FRAMES:
            self._head, self._tail = whole_table(file, "head")[:], whole_table(file, "tail")[:]
            self._frames = own_dataset(file, "frames")
            if self._frames.nbytes > MOST_PACKET_BYTES * max(len(self._frames), 1):
                raise BadChunk(path, "its pictures are larger than any camera's")
            self.plain = None
            return
        self._dataset = own_dataset(file, "data" if layout == BLOB else "records")
        self._base = self._dataset.id.get_offset()
        # Contiguous uncompressed bytes are read directly: ten times as fast as through the library.
        self.plain = path.open("rb", buffering=0) if self._base is not None else None

    def close(self) -> None:
        """Close the file that was opened here."""
        if self.plain is not None:
            self.plain.close()

    def one(self, row: int, offset: int, size: int) -> bytes:
        """Read the payload of one row."""
        if self._layout == FRAMES:
            frame: bytes = self._frames[row].tobytes()
            return bytes(self._head[row].tobytes()) + frame + bytes(self._tail[row].tobytes())
        return self._stretch(offset, offset + size)

    def _stretch(self, start: int, stop: int) -> bytes:
        if not 0 <= start <= stop <= start + MOST_PACKET_BYTES:
            return b""  # a damaged index: the checksum will not match
        if self.plain is not None:
            self.plain.seek(self._base + start)
            return _read_all(self.plain, stop - start)
        if self._layout == RECORDS:
            start, stop = (place // self._dataset.dtype.itemsize for place in (start, stop))
        content: bytes = self._dataset[start:stop].tobytes()
        return content

    def many(self, index: npt.NDArray[np.void], first: int, last: int, step_bytes: int) -> Iterator[bytes]:
        """Yield the payloads of the rows [first, last), reading about `step_bytes` at a time."""
        if self._layout == FRAMES:
            yield from (self.one(row, 0, 0) for row in range(first, last))
            return
        starts = index["offset"].astype(np.int64)
        ends = starts + index["size"]
        while first < last:
            start = int(starts[first])
            stop_row = first + int(np.searchsorted(ends[first:last], start + step_bytes, "right"))
            stop_row = max(stop_row, first + 1)
            block = self._stretch(start, int(ends[stop_row - 1]))
            for row in range(first, stop_row):
                yield block[int(starts[row]) - start : int(ends[row]) - start]
            first = stop_row


def _index(file: h5py.File, path: Path) -> npt.NDArray[np.void]:
    """Read the index, which is contiguous, without the library's conversions."""
    stored = whole_table(file, "index")
    place = stored.id.get_offset()
    if place is None:
        return np.empty(0, INDEX)
    if stored.id.get_type() != INDEX_TYPE:
        raise BadChunk(path, "the index has another type")
    with path.open("rb", buffering=0) as plain:
        plain.seek(place)
        return np.frombuffer(_read_all(plain, stored.id.get_storage_size()), INDEX)


def _value(file: h5py.File, path: Path, attribute: h5py.h5a.AttrID) -> Any:
    """Return an attribute of fixed length; others are in a heap, which hangs HDF5 if damaged. Raises BadChunk."""
    kind, size = attribute.get_type(), attribute.get_storage_size()
    if size > MOST_ATTRIBUTE_BYTES:
        name = attribute.name.decode()
        raise BadChunk(path, f"attribute {name!r} has more than {MOST_ATTRIBUTE_BYTES} bytes")
    # Texts and numbers are read without the overhead of the library: chunks are opened often.
    if isinstance(kind, h5py.h5t.TypeStringID) and not kind.is_variable_str() and size == kind.get_size():
        text = np.empty((), f"S{size}")
        attribute.read(text, mtype=kind)
        return text.item().decode()
    if isinstance(kind, NUMBERS):
        number = np.empty(attribute.shape, attribute.dtype)
        attribute.read(number)
        return number[()]
    name = attribute.name.decode()
    if kind.detect_class(h5py.h5t.VLEN) or (
        isinstance(kind, h5py.h5t.TypeStringID) and kind.is_variable_str()
    ):
        raise BadChunk(path, f"attribute {name!r} has no fixed length, as in no file of schema {SCHEMA!r}")
    value = file.attrs[name]
    return value.decode() if isinstance(value, bytes) else value


def _read_all(file: Any, size: int) -> bytes:
    """Read `size` bytes, less only at the end of the file."""
    content: bytes = file.read(size)
    while len(content) < size:
        more = file.read(size - len(content))
        if not more:
            break
        content += more
    return content


class Chunk:
    """A sealed file opened for reading; the index is loaded, payloads are read on demand."""

    def __init__(self, path: Path) -> None:
        """Open the file. Raises BadChunk when it is not a chunk or its parts do not fit together."""
        self.path = path
        try:
            self._file = open_hdf5(path)
        except NotPlainFile as error:
            raise BadChunk(path, f"is {error.strerror}") from error
        except OSError as error:
            raise BadChunk(path, f"does not open as HDF5 ({error})") from error
        try:
            if (schema := self._attribute("schema")) != SCHEMA:
                raise BadChunk(path, f"schema is {schema!r}, not {SCHEMA!r}")
            self.index = _index(self._file, path)
            self.layout = str(self._attribute("layout") or BLOB)
            self._payloads = Payloads(self._file, path, self.layout)
            if self.index.dtype != INDEX or len(self.index) != int(self._attribute("count")):
                raise BadChunk(path, "the index does not hold what the attributes promise")
        except UNREADABLE as error:
            self._file.close()
            raise BadChunk(path, str(error)) from error
        except BadChunk:
            self.close()
            raise

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """All attributes of the file. Raises BadChunk."""
        try:
            numbers = range(h5py.h5a.get_num_attrs(self._file.id))
            attributes_ = [h5py.h5a.open(self._file.id, index=number) for number in numbers]
            return {
                attribute.name.decode(): _value(self._file, self.path, attribute) for attribute in attributes_
            }
        except UNREADABLE as error:
            raise BadChunk(self.path, str(error)) from error

    def _attribute(self, name: str) -> Any:
        """Return one attribute, None if missing, without reading the others: chunks are opened often."""
        if not h5py.h5a.exists(self._file.id, name.encode()):
            return None
        return _value(self._file, self.path, h5py.h5a.open(self._file.id, name.encode()))

    def __enter__(self) -> Chunk:
        """Return the open chunk."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self.close()

    def close(self) -> None:
        """Close the file."""
        if hasattr(self, "_payloads"):
            self._payloads.close()
        self._file.close()

    @property
    def poses(self) -> npt.NDArray[np.float32] | None:
        """Poses as sent, (n, 4, 4) row-vector matrices, or None if the stream has none."""
        poses: npt.NDArray[np.float32] | None = None if self._pose is None else self._pose[:]
        return None if poses is None else poses.reshape(-1, 4, 4)

    def pose(self, row: int) -> npt.NDArray[np.float32] | None:
        """Read the pose of one row, (4, 4), or None if the stream has none."""
        pose: npt.NDArray[np.float32] | None = None if self._pose is None else self._pose[row]
        return None if pose is None else pose.reshape(4, 4)

    @cached_property
    def _pose(self) -> h5py.Dataset | None:
        if "pose" not in self._file:
            return None
        poses = whole_table(self._file, "pose")
        if poses.size != len(self.index) * POSE_FLOATS:
            raise BadChunk(self.path, "there is not a pose for each packet")
        return poses

    @property
    def records(self) -> npt.NDArray[np.void] | None:
        """All records of all packets as one typed table, or None if the payloads are not fixed records."""
        if self.layout != RECORDS:
            return None
        records: npt.NDArray[np.void] = self.dataset("records")[:]
        return records

    @property
    def blocks(self) -> npt.NDArray[np.void]:
        """The chunks in an archive, (n,) of `BLOCKS`; empty for a chunk."""
        if self.attributes.get("kind") != ARCHIVE:
            return np.empty(0, BLOCKS)
        blocks: npt.NDArray[np.void] = whole_table(self._file, "blocks", len(self.index))[:]
        return blocks

    def dataset(self, name: str) -> h5py.Dataset:
        """Return a dataset of the open file."""
        return own_dataset(self._file, name)

    def payload(self, row: int) -> bytes:
        """Read one payload."""
        return self._payloads.one(row, int(self.index["offset"][row]), int(self.index["size"][row]))

    def payloads(
        self, first: int = 0, last: int | None = None, *, step_bytes: int = READ_STEP_BYTES
    ) -> Iterator[bytes]:
        """Yield payloads of the rows [first, last), reading about `step_bytes` at a time."""
        last = len(self.index) if last is None else last
        return self._payloads.many(self.index, first, last, step_bytes)

    def damage(self, each: Callable[[bytes], None] = lambda _: None) -> list[str]:
        """Return the blocks with a wrong checksum ("index", "pose", "packet <seq>"); pass every payload to `each`."""
        if crc32(self.index.tobytes()) != int(self.attributes.get("index_crc32", -1)):
            return ["index"]
        damaged: list[str] = []
        try:
            poses = self.poses
            if poses is not None and crc32(poses.tobytes()) != int(self.attributes.get("pose_crc32", -1)):
                damaged.append("pose")
        except (*UNREADABLE, BadChunk):
            damaged.append("pose")
        for row, payload in enumerate(self._readable(0, len(self.index))):
            if payload is None or crc32(payload) != int(self.index["crc32"][row]):
                damaged.append(f"packet {int(self.index['seq'][row])}")
            if payload is not None:
                each(payload)
        return damaged

    def sound(
        self, first: int = 0, last: int | None = None, *, start: int = 0, bad: dict[int, str] | None = None
    ) -> Iterator[tuple[int, bytes]]:
        """Yield (`start` + row, payload) of undamaged rows [first, last); put the others into `bad`."""
        last = len(self.index) if last is None else last
        promised = self.index["crc32"][first:last].tolist()
        for row, payload in enumerate(self._readable(first, last), first):
            if payload is not None and crc32(payload) == promised[row - first]:
                yield start + row, payload
            elif bad is not None:
                bad[start + row] = DAMAGED

    def _readable(self, first: int, last: int) -> Iterator[bytes | None]:
        """Yield payloads of the rows [first, last), None for those that cannot be decompressed."""
        if self._payloads.plain is not None:
            yield from self.payloads(first, last)
            return
        rows = 1 if self.layout == FRAMES else ROWS_AT_ONCE
        for start in range(first, last, rows):
            yield from self._readable_rows(start, min(start + rows, last))

    def _readable_rows(self, first: int, last: int) -> list[bytes | None]:
        try:
            return list(self.payloads(first, last))
        except UNREADABLE:
            rows = range(first, last)
            return [None] if len(rows) == 1 else [self._readable_rows(row, row + 1)[0] for row in rows]


def chunk_paths(folder: Path) -> list[Path]:
    """Return the sealed files of a stream in order, without partial files, other files and packed chunks."""
    if not folder.is_dir():
        return []
    files = [path for path in folder.iterdir() if path.suffix == CHUNK_SUFFIX and chunk_number(path)]
    packed = [span for path in files if is_archive(path) and (span := chunk_range(path))]
    numbered = {
        path: number
        for path in files
        if (number := chunk_number(path) or 0)
        and (is_archive(path) or not any(first <= number <= last for first, last in packed))
    }
    return sorted(numbered, key=lambda path: numbered[path])


def is_archive(path: Path) -> bool:
    """Return whether a name is that of an archive: two numbers instead of one."""
    return "-" in path.stem

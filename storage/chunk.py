"""A sealed chunk: some seconds of one stream in one HDF5 file that never changes again.

The file is built in memory and written in one go, so that a full disk is an ordinary error of an ordinary
write and never a half-made HDF5 file. A name without `.part` means: complete, synced, checked.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np
import numpy.typing as npt

from storage.errors import BadChunk
from storage.names import CHUNK_SUFFIX, PART_SUFFIX, chunk_name, chunk_number

SCHEMA = "chunk/1"

INDEX = np.dtype(
    [
        ("seq", "<u8"),  # the producer's number of the packet, from 0, without holes unless a loss is named
        ("epoch_ms", "<u8"),  # which run of the producer numbered it (Unix milliseconds of its start)
        ("device_ticks", "<i8"),  # the sensor's stamp, 100 ns ticks of the device's clock, as sent
        ("host_ns", "<i8"),  # arrival, CLOCK_MONOTONIC of the capture computer
        ("offset", "<u8"),  # first byte of the payload in `data`
        ("size", "<u4"),  # bytes of the payload
        ("crc32", "<u4"),  # of the payload
        ("connection", "<u4"),  # which connection of this run delivered it, from 1
    ]
)
"""One row a packet, in the order of arrival."""

POSE = np.dtype(("<f4", (16,)))


class Packet(NamedTuple):
    """One packet as the drainer hands it over; `payload` and `pose` are bytes-like."""

    seq: int
    epoch_ms: int
    device_ticks: int
    host_ns: int
    connection: int
    payload: bytes | memoryview
    pose: bytes | memoryview


@dataclass(frozen=True)
class Sealed:
    """A chunk that is on the disk for good."""

    path: Path
    first_seq: int
    last_seq: int
    count: int
    bytes: int
    sha256: str


def _index_of(packets: Sequence[Packet]) -> npt.NDArray[np.void]:
    index = np.empty(len(packets), INDEX)
    for field in ("seq", "epoch_ms", "device_ticks", "host_ns", "connection"):
        index[field] = [getattr(packet, field) for packet in packets]
    sizes = [len(packet.payload) for packet in packets]
    index["size"] = sizes
    index["offset"] = np.concatenate(([0], np.cumsum(sizes[:-1], dtype=np.uint64))) if packets else []
    index["crc32"] = [zlib.crc32(packet.payload) for packet in packets]
    return index


def image_of(packets: Sequence[Packet], attributes: dict[str, Any]) -> bytes:
    """Build the HDF5 file of these packets in memory.

    Layout: `data` (bytes,) uint8 contiguous, all payloads one after another; `index` (n,) of INDEX; `pose`
    (n, 16) float32 when the stream carries poses. Attributes: schema, counts, CRC-32 of index and pose.
    """
    index = _index_of(packets)
    data = np.frombuffer(b"".join(packet.payload for packet in packets), np.uint8)
    with h5py.File("chunk", "w", driver="core", backing_store=False, block_size=1 << 20) as file:
        file.create_dataset("data", data=data)
        file.create_dataset("index", data=index)
        file.attrs["index_crc32"] = zlib.crc32(index.tobytes())
        if packets and len(packets[0].pose):
            pose = np.frombuffer(b"".join(packet.pose for packet in packets), np.float32).reshape(-1, 16)
            file.create_dataset("pose", data=pose)
            file.attrs["pose_crc32"] = zlib.crc32(pose.tobytes())
        file.attrs["schema"] = SCHEMA
        file.attrs["count"] = len(packets)
        file.attrs["first_seq"] = packets[0].seq if packets else 0
        file.attrs["last_seq"] = packets[-1].seq if packets else 0
        for name, value in attributes.items():
            file.attrs[name] = value
        file.flush()
        return bytes(file.id.get_file_image())


def write_sealed(path: Path, content: bytes) -> None:
    """Write a file so that its final name only ever stands for whole, synced content.

    Raises OSError (no space and the like) after removing its own partial file.
    """
    part = path.with_name(path.name + PART_SUFFIX)
    try:
        with open(part, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.rename(part, path)
    except OSError:
        part.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def seal(folder: Path, number: int, packets: Sequence[Packet], attributes: dict[str, Any]) -> Sealed:
    """Seal these packets as the n-th chunk of a stream's folder; on return they are on the disk."""
    content = image_of(packets, attributes)
    path = folder / chunk_name(number)
    write_sealed(path, content)
    return Sealed(
        path, packets[0].seq, packets[-1].seq, len(packets), len(content), hashlib.sha256(content).hexdigest()
    )


def chunk_paths(folder: Path) -> list[Path]:
    """Return the sealed chunks of a stream's folder in order; parts and strangers are left out."""
    if not folder.is_dir():
        return []
    found = [path for path in folder.iterdir() if path.suffix == CHUNK_SUFFIX and chunk_number(path)]
    return sorted(found, key=lambda path: chunk_number(path) or 0)


class Chunk:
    """A sealed chunk opened for reading; the index is loaded, payloads are read when asked for."""

    def __init__(self, path: Path) -> None:
        """Open the file. Raises BadChunk when it is not a chunk or its parts do not fit together."""
        self.path = path
        try:
            self._file = h5py.File(path, "r")
        except OSError as error:
            raise BadChunk(path, f"does not open as HDF5 ({error})") from error
        try:
            self.attributes: dict[str, Any] = dict(self._file.attrs)
            self.index: npt.NDArray[np.void] = self._file["index"][:]
            self._data = self._file["data"]
            if self.attributes.get("schema") != SCHEMA:
                raise BadChunk(path, f"schema is {self.attributes.get('schema')!r}, not {SCHEMA!r}")
            if self.index.dtype != INDEX or len(self.index) != int(self.attributes["count"]):
                raise BadChunk(path, "the index does not hold what the attributes promise")
        except (KeyError, OSError, ValueError, RuntimeError) as error:
            self._file.close()
            raise BadChunk(path, str(error)) from error
        except BadChunk:
            self._file.close()
            raise

    def __enter__(self) -> Chunk:
        """Return the open chunk."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @property
    def poses(self) -> npt.NDArray[np.float32] | None:
        """Poses as sent, (n, 4, 4) row-vector matrices, or None when the stream carries none."""
        if "pose" not in self._file:
            return None
        poses: npt.NDArray[np.float32] = self._file["pose"][:]
        return poses.reshape(-1, 4, 4)

    def payload(self, row: int) -> bytes:
        """Read one payload."""
        offset, size = int(self.index["offset"][row]), int(self.index["size"][row])
        return bytes(self._data[offset : offset + size])

    def payloads(
        self, first: int = 0, last: int | None = None, *, step_bytes: int = 8 << 20
    ) -> Iterator[bytes]:
        """Yield payloads of the rows [first, last), reading about `step_bytes` at a time."""
        last = len(self.index) if last is None else last
        ends = self.index["offset"] + self.index["size"]
        while first < last:
            start = int(self.index["offset"][first])
            stop_row = max(
                int(np.searchsorted(ends[first:last], start + step_bytes, "right")) + first, first + 1
            )
            block = self._data[start : int(ends[stop_row - 1])].tobytes()
            for row in range(first, stop_row):
                offset = int(self.index["offset"][row]) - start
                yield block[offset : offset + int(self.index["size"][row])]
            first = stop_row

    def damage(self) -> list[str]:
        """Return what does not agree with its checksum: "index", "pose", "packet <seq>"."""
        found: list[str] = []
        if zlib.crc32(self.index.tobytes()) != int(self.attributes.get("index_crc32", -1)):
            return ["index"]
        poses = self.poses
        if poses is not None and zlib.crc32(poses.tobytes()) != int(self.attributes.get("pose_crc32", -1)):
            found.append("pose")
        for row, payload in enumerate(self.payloads()):
            if zlib.crc32(payload) != int(self.index["crc32"][row]):
                found.append(f"packet {int(self.index['seq'][row])}")
        return found

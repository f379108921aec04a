"""Seal a chunk: some seconds of one stream in one HDF5 file that never changes.

The file is built in memory around the payloads and written sequentially, so that a full disk is an ordinary write
error and never leaves an incomplete HDF5 file. A file without the suffix `.part` is complete and synced.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kitchensync.storage.chunks.compress import compressor, create_compressed, put_frame
from kitchensync.storage.chunks.layout import (
    CHUNK,
    DEVICE_TICK_HZ,
    HOST_CLOCK,
    INDEX,
    POSE_FLOATS,
    SCHEMA,
    Blob,
    Frames,
    Layout,
    RecordLayout,
    fitting,
    layout_of,
)
from kitchensync.storage.disk.checksum import crc32
from kitchensync.storage.disk.durable import LOCAL, Buffer, Disk, make_durable_folders, write_whole
from kitchensync.storage.disk.image import ImageFile, gathered
from kitchensync.storage.names import PART_SUFFIX, chunk_name, stream_folder


class Packet(NamedTuple):
    """One packet of the drainer; `payload` and `pose` are bytes-like."""

    seq: int
    epoch_ms: int
    device_ticks: int
    host_ns: int
    connection: int
    payload: bytes | memoryview
    pose: bytes | memoryview


@dataclass(frozen=True)
class Sealed:
    """A durable chunk on the disk."""

    path: Path
    first_seq: int
    last_seq: int
    count: int
    bytes: int
    sha256: str


def _index_of(packets: Sequence[Packet]) -> npt.NDArray[np.void]:
    index = np.empty(len(packets), INDEX)
    if not packets:
        return index
    *columns, payloads, _ = zip(*packets, strict=True)
    for field, column in zip(Packet._fields, columns, strict=False):
        index[field] = column
    sizes = np.array([len(payload) for payload in payloads], np.uint64)
    index["size"] = sizes
    index["offset"] = np.cumsum(sizes) - sizes
    index["crc32"] = [crc32(payload) for payload in payloads]
    return index


def layout_image(
    packets: Sequence[Packet], attributes: dict[str, Any], layout: Layout, *, hurried: bool = False
) -> tuple[int, Iterator[Buffer]]:
    """Build the HDF5 file of these packets; return its size and its content as buffers.

    `hurried` does not compress pictures, which takes most of the time. Large buffers are views of the payloads: use
    them while the packets exist.
    """
    index = _index_of(packets)
    layout = fitting(layout, index["size"].tolist())
    image = ImageFile()
    try:
        file = image.file
        payloads = [packet.payload for packet in packets]
        size = sum(map(len, payloads))
        if isinstance(layout, Blob):
            image.place("data", np.dtype(np.uint8), size, size, gathered(payloads))
        elif isinstance(layout, RecordLayout):
            record = layout.record
            image.place("records", record, size // record.itemsize, size, gathered(payloads))
        else:
            _put_frames(image, [memoryview(payload) for payload in payloads], layout, hurried=hurried)
        file.create_dataset("index", data=index)
        file.attrs["index_crc32"] = crc32(index.tobytes())
        if packets and len(packets[0].pose):
            pose = np.frombuffer(b"".join(packet.pose for packet in packets), np.float32)
            file.create_dataset("pose", data=pose.reshape(-1, POSE_FLOATS))
            file.attrs["pose_crc32"] = crc32(pose.tobytes())
        describe_file(file.attrs, CHUNK, layout, index)
        for name, value in attributes.items():
            set_attribute(file.attrs, name, value)
    except BaseException:
        image.abandon()
        raise
    return image.finish()


def describe_file(attrs: Any, kind: str, layout: Layout, index: npt.NDArray[np.void]) -> None:
    """Write the attributes that every chunk and every archive carries."""
    for name, text in (
        ("schema", SCHEMA),
        ("kind", kind),
        ("layout", layout.name),
        ("host_clock", HOST_CLOCK),
    ):
        set_attribute(attrs, name, text)
    attrs["count"] = len(index)
    attrs["first_seq"] = int(index["seq"][0]) if len(index) else 0
    attrs["last_seq"] = int(index["seq"][-1]) if len(index) else 0
    attrs["payload_bytes"] = int(index["size"].sum(dtype=np.uint64))
    attrs["device_tick_hz"] = DEVICE_TICK_HZ


def set_attribute(attrs: Any, name: str, value: Any) -> None:
    """Write an attribute; texts get a fixed length, since HDF5's heap for others may hang once it is damaged."""
    attrs[name] = np.bytes_(value.encode() or b"\0") if isinstance(value, str) else value


def _put_frames(image: ImageFile, payloads: list[memoryview], layout: Frames, *, hurried: bool) -> None:
    start, stop = layout.head.itemsize, layout.head.itemsize + layout.frame.itemsize
    count = len(payloads)
    heads = b"".join(payload[:start] for payload in payloads)
    tails = b"".join(payload[stop:] for payload in payloads)
    image.place("head", layout.head, count, len(heads), [heads])
    image.place("tail", layout.tail, count, len(tails), [tails])
    frames = [payload[start:stop] for payload in payloads]
    if hurried or compressor() is None:  # HDF5's own deflate does not keep up
        image.place("frames", layout.frame, count, count * layout.frame.itemsize, frames)
        return
    dataset = create_compressed(image.file, "frames", count, layout.frame)
    for number, frame in enumerate(frames):
        put_frame(dataset, number, frame)


def prepare_folder(recording: Path, stream: str, disk: Disk = LOCAL) -> Path:
    """Make the folder of a stream so that it survives a power cut; drop what a crash left half written.

    Call it before the first seal of every run: it also settles a chunk that was renamed but whose folder was
    not yet synced when an earlier run was killed, so that its packets may be acknowledged.
    """
    folder = stream_folder(recording, stream)
    make_durable_folders(folder, recording, disk)
    for part in folder.glob(f"*{PART_SUFFIX}"):
        disk.remove(part)
    return folder


def seal(
    folder: Path,
    number: int,
    packets: Sequence[Packet],
    attributes: dict[str, Any],
    disk: Disk = LOCAL,
    *,
    hurried: bool = False,
) -> Sealed:
    """Seal these packets durably as the n-th chunk in a stream's folder.

    `attributes` are stored in the file; `stream`, the full name, determines the layout. `hurried` does not compress.
    """
    layout = layout_of(str(attributes.get("stream", "")), str(attributes.get("format", "{}")))
    size, pieces = layout_image(packets, attributes, layout, hurried=hurried)
    path = folder / chunk_name(number)
    digest = hashlib.sha256()
    write_whole(path, _hashed(pieces, digest), PART_SUFFIX, disk, size=size)
    return Sealed(path, packets[0].seq, packets[-1].seq, len(packets), size, digest.hexdigest())


def _hashed(pieces: Iterable[Buffer], digest: Any) -> Iterator[Buffer]:
    for piece in pieces:
        digest.update(piece)
        yield piece

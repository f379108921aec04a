"""Sealing packets into HDF5 compared with appending them to a plain file, in MB/s.

The HDF5 stage writes the layout without checksums, hash and sync, so that both sides do the same I/O.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from kitchensync.storage.chunks import chunk_writer
from kitchensync.storage.chunks.chunk_writer import Packet, layout_image
from kitchensync.storage.chunks.layout import Blob, Layout, layout_of
from kitchensync.storage.disk.durable import LOCAL

KINDS: list[tuple[str, int, Layout]] = [
    ("blob 64 KB", 64 << 10, Blob()),
    ("blob 512 KB", 512 << 10, Blob()),
    ("frames 1 MB, not compressed", (2 * 2 << 18) + 16, layout_of("hololens/depth_ahat")),
]
"""Name, payload bytes and layout of the packets of each measurement."""


def random_packets(megabytes: int, payload_bytes: int) -> list[Packet]:
    """Return packets with random payloads of one size."""
    source = random.Random(1)
    count = (megabytes << 20) // payload_bytes
    return [Packet(n, 1, n, n, 1, source.randbytes(payload_bytes), bytes(64)) for n in range(count)]


def append_plain(packets: list[Packet], path: Path) -> None:
    """Append payloads to a plain file."""
    with path.open("wb", buffering=1 << 20) as file:
        for packet in packets:
            file.write(packet.payload)


def write_hdf5(packets: list[Packet], layout: Layout, path: Path) -> None:
    """Write the HDF5 file without checksums, hash and sync."""
    _, pieces = layout_image(packets, {"stream": "x"}, layout)
    handle = LOCAL.create(path)
    LOCAL.write(handle, list(pieces))
    LOCAL.close(handle)


def ratios_of_stage(folder: Path, megabytes: int, rounds: int) -> dict[str, list[float]]:
    """Return the speed of the HDF5 stage divided by that of a plain file, per kind and round."""
    kept = chunk_writer.crc32, chunk_writer.compressor
    chunk_writer.crc32, chunk_writer.compressor = (lambda _: 0), (lambda: None)
    try:
        ratios: dict[str, list[float]] = {name: [] for name, _, _ in KINDS}
        for _ in range(rounds):
            for name, payload_bytes, layout in KINDS:
                packets = random_packets(megabytes, payload_bytes)
                plain_s = _seconds(partial(append_plain, packets), folder / "plain")
                hdf5_s = _seconds(partial(write_hdf5, packets, layout), folder / "stage.h5")
                ratios[name].append(plain_s / hdf5_s)
        return ratios
    finally:
        chunk_writer.crc32, chunk_writer.compressor = kept


def _seconds(write: Callable[[Path], None], path: Path) -> float:
    begun_s = time.perf_counter()
    write(path)
    seconds = time.perf_counter() - begun_s
    path.unlink()  # each measurement writes a new file, as a drainer does
    return seconds

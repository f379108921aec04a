"""What a layout costs: sealing packets into HDF5 beside appending them to a plain file, CPU and disk.

    python -P benchmarks/packet_path/chunk_layouts.py [--megabytes 128] [--rounds 3] [--only stage|layouts|depth]

`stage`: the whole of `seal` (layout, checksums, hash, write, sync, rename) beside a plain file with one sync; and
the same two without checksums, hash and sync, which is the HDF5 stage alone. `layouts`: one contiguous piece against
HDF5 chunks. `depth`: lossless compression of raw depth pictures. Rounds are interleaved, medians are printed; CPU is
that of this process.
"""

from __future__ import annotations

import argparse
import importlib
import os
import random
import statistics
import tempfile
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from kitchensync.storage.chunks import chunk_writer as chunk_module
from kitchensync.storage.chunks.chunk_writer import Packet, layout_image, seal
from kitchensync.storage.chunks.compress import shuffled
from kitchensync.storage.chunks.layout import Blob, Layout, RecordLayout, layout_of
from kitchensync.storage.disk.durable import LOCAL

Figures = dict[str, list[tuple[float, float]]]


def packets_of(sizes: Iterable[int], pose_bytes: int = 64) -> list[Packet]:
    """Random payloads of these sizes."""
    source = random.Random(1)
    return [Packet(n, 1, n, n, 1, source.randbytes(size), bytes(pose_bytes)) for n, size in enumerate(sizes)]


def timed(figures: Figures, name: str, megabytes: float, work: Callable[[], object]) -> None:
    """Add one measurement: MB/s and ms of CPU per MB."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    figures[name].append((megabytes / wall, 1e3 * cpu / megabytes))


def empty(folder: Path) -> None:
    """Remove what was written: each way writes a new file, as a drainer does."""
    for path in folder.iterdir():
        path.unlink()


def plain(folder: Path, packets: list[Packet], sync: bool) -> None:
    """Append payloads to a plain file."""
    with open(folder / "plain", "wb", buffering=1 << 20) as file:
        for packet in packets:
            file.write(packet.payload)
        if sync:
            file.flush()
            os.fsync(file.fileno())


def stage_alone(folder: Path, packets: list[Packet], layout: Layout) -> None:
    """Write the HDF5 file without checksums, hash and sync."""
    kept = chunk_module.crc32
    chunk_module.crc32 = lambda _: 0
    try:
        _, pieces = layout_image(packets, {"stream": "x"}, layout)
        handle = LOCAL.create(folder / "stage.h5")
        LOCAL.write(handle, list(pieces))
        LOCAL.close(handle)
    finally:
        chunk_module.crc32 = kept


def run_stage(folder: Path, megabytes: int, rounds: int) -> Figures:
    """Sealing beside a plain file, for packets of several sizes and kinds."""
    figures: Figures = defaultdict(list)
    kinds: list[tuple[str, int, Layout]] = [
        ("blob 256 B", 256, Blob()),
        ("blob 4 KB", 4 << 10, Blob()),
        ("blob 64 KB", 64 << 10, Blob()),
        ("blob 512 KB", 512 << 10, Blob()),
        ("records 10 KB", 10_080, layout_of("hololens/gyroscope")),
        ("frames 1 MB, not compressed", (2 * 2 << 18) + 16, layout_of("hololens/depth_ahat")),
    ]
    chunk_module.compressor = lambda: None
    for _ in range(rounds):
        for name, size, layout in kinds:
            count = max((megabytes << 20) // size, 1)
            packets = packets_of([size] * min(count, 60_000))
            mb = sum(len(packet.payload) for packet in packets) / 1e6
            constants = {"stream": _stream(layout)}
            ways: dict[str, Callable[[], object]] = {
                "plain file": partial(plain, folder, packets, False),
                "HDF5 stage": partial(stage_alone, folder, packets, layout),
                "plain file, sync": partial(plain, folder, packets, True),
                "sealed": partial(seal, folder, 1, packets, constants),
            }
            for way, work in ways.items():
                timed(figures, f"{name}: {way}", mb, work)
                empty(folder)
    return figures


def _stream(layout: Layout) -> str:
    if isinstance(layout, RecordLayout):
        return "hololens/gyroscope"
    return "hololens/pv" if isinstance(layout, Blob) else "hololens/depth_ahat"


def run_layouts(folder: Path, megabytes: int, rounds: int) -> Figures:
    """One contiguous piece against HDF5 chunks, for video-like packets, written by stock means."""
    packets = packets_of(
        [random.Random(2).randrange(8_000, 60_000) for _ in range((megabytes << 20) // 34_000)]
    )
    mb = sum(len(packet.payload) for packet in packets) / 1e6
    content = np.frombuffer(b"".join(packet.payload for packet in packets), np.uint8)
    figures: Figures = defaultdict(list)

    def chunked(direct: bool) -> None:
        with h5py.File(folder / "chunked.h5", "w") as file:
            data = file.create_dataset("data", (len(content),), "u1", chunks=(1 << 20,))
            if not direct:
                data[:] = content
                return
            for start in range(0, len(content), 1 << 20):
                piece = content[start : start + (1 << 20)]
                padded = piece if len(piece) == 1 << 20 else np.pad(piece, (0, (1 << 20) - len(piece)))
                data.id.write_direct_chunk((start,), padded)

    def core() -> None:
        with h5py.File("x", "w", driver="core", backing_store=False) as file:
            file.create_dataset("data", data=content)
            file.flush()
            image = file.id.get_file_image()
        (folder / "core.h5").write_bytes(image)

    for _ in range(rounds):
        timed(figures, "plain file", mb, lambda: plain(folder, packets, False))
        timed(figures, "contiguous, payloads in place", mb, lambda: stage_alone(folder, packets, Blob()))
        timed(figures, "contiguous, image in memory", mb, core)
        timed(figures, "chunks of 1 MiB, direct", mb, lambda: chunked(True))
        timed(figures, "chunks of 1 MiB, by slice", mb, lambda: chunked(False))
    return figures


def depth_pictures(count: int) -> list[bytes]:
    """Depth and brightness of a counter with two hands and 4 mm of noise, as a headset sends them raw."""
    noise = np.random.default_rng(3)
    rows, columns = np.mgrid[0:512, 0:512].astype(np.float32)
    seen = np.hypot(rows - 256, columns - 256) < 250
    pictures = []
    for number in range(count):
        depth = 470 + 0.75 * (512 - rows) + 0.05 * columns
        for x, y in ((180 + 3 * number, 340), (330, 330 - 2 * number)):
            depth[np.hypot((columns - x) / 34, (rows - y) / 60) < 1] = 340
        depth += noise.standard_normal(depth.shape, dtype=np.float32) * 4
        brightness = np.where(seen, 1.5e9 / depth**2, 0)
        pictures.append(np.rint(np.stack([np.where(seen, depth, 0), brightness])).astype("<u2").tobytes())
    return pictures


def run_depth(rounds: int) -> tuple[Figures, dict[str, float]]:
    """Lossless codecs on raw depth: what stock HDF5 undoes by itself, and what wants a plugin."""
    pictures = depth_pictures(16)
    mb = sum(map(len, pictures)) / 1e6
    figures: Figures = defaultdict(list)
    ratios: dict[str, float] = {}

    def add(name: str, work: Callable[[], int]) -> None:
        sizes: list[int] = []
        timed(figures, name, mb, lambda: sizes.append(work()))
        ratios[name] = mb * 1e6 / sizes[0]

    def filtered(**options: Any) -> int:
        with h5py.File("x", "w", driver="core", backing_store=False) as file:
            data = file.create_dataset(
                "d", (len(pictures), 2, 512, 512), "<u2", chunks=(1, 2, 512, 512), **options
            )
            for number, picture in enumerate(pictures):
                data[number] = np.frombuffer(picture, "<u2").reshape(2, 512, 512)
            file.flush()
            return int(data.id.get_storage_size())

    for _ in range(rounds):
        add("zlib 1 + shuffle (stock)", lambda: sum(len(zlib.compress(shuffled(p, 2), 1)) for p in pictures))
        add("lzf + shuffle (h5py only)", lambda: filtered(compression="lzf", shuffle=True))
        for level in (0, 1, 2) if isal_zlib else ():
            name = f"ISA-L deflate {level} + shuffle (stock)"
            add(
                name,
                lambda level=level: sum(len(isal_zlib.compress(shuffled(p, 2), level)) for p in pictures),
            )
        if hdf5plugin:
            add("Bitshuffle-LZ4 (plugin)", lambda: filtered(**hdf5plugin.Bitshuffle(cname="lz4")))
            add("Zstd 1 + shuffle (plugin)", lambda: filtered(shuffle=True, **hdf5plugin.Zstd(1)))
            blosc = hdf5plugin.Blosc2(cname="zstd", clevel=1, filters=2)
            add("Blosc2 Zstd 1 + bitshuffle (plugin)", partial(filtered, **blosc))
    return figures, ratios


def _optional(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


isal_zlib, hdf5plugin = _optional("isal.isal_zlib"), _optional("hdf5plugin")


def show(title: str, figures: Figures, ratios: dict[str, float] | None = None) -> None:
    """Print medians."""
    print(f"\n{title}")
    for name, found in figures.items():
        speed, cpu = (statistics.median(column) for column in zip(*found, strict=True))
        size = f"  size / {ratios[name]:.2f}" if ratios else ""
        print(f"  {name:44} {speed:8.0f} MB/s {cpu:7.2f} ms CPU/MB{size}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--megabytes", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=["stage", "layouts", "depth"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ks-bench") as name:
        folder = Path(name)
        if options.only in (None, "depth"):
            show("raw depth, lossless", *run_depth(options.rounds))
        if options.only in (None, "layouts"):
            show("layouts, packets of 8 to 60 KB", run_layouts(folder, options.megabytes, options.rounds))
        if options.only in (None, "stage"):
            show("sealing beside a plain file", run_stage(folder, options.megabytes, options.rounds))


if __name__ == "__main__":
    main()

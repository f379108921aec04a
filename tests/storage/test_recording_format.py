"""The reader of docs/reference/recording-format.md, taken from the page, on files that were just written."""

from __future__ import annotations

import random
import re
import shutil
import struct
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from kitchensync.storage.chunks import chunk_writer as chunk_module
from kitchensync.storage.chunks.chunk_writer import Packet, seal
from kitchensync.storage.chunks.compress import compressor
from kitchensync.storage.chunks.layout import INDEX
from kitchensync.storage.manifest import write_json
from kitchensync.storage.move.archive import archive_stream

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "recording-format.md"


@pytest.fixture(scope="module")
def reader() -> dict[str, Any]:
    """What the page's code defines, and it may import h5py and zlib alone."""
    code = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[0]
    assert re.findall(r"^(?:import|from) (\w+)", code, re.MULTILINE) == ["h5py", "zlib"]
    names: dict[str, Any] = {}
    exec(compile(code, str(PAGE), "exec"), names)
    return names


def payloads_of(stream: str, count: int) -> list[bytes]:
    source = random.Random(stream)
    if stream.endswith("depth_ahat"):
        picture = np.arange(1 << 19, dtype="<u2") % 700
        return [
            struct.pack("<II", 0, 1 << 20) + (picture + n).tobytes() + struct.pack("<Q", n)
            for n in range(count)
        ]
    sizes = {"hololens/gyroscope": 320, "hololens/spatial_input": 1936, "clock/hololens": 32}
    if stream in sizes:
        return [source.randbytes(sizes[stream]) for _ in range(count)]
    return [source.randbytes(source.randrange(3000)) for _ in range(count)]


STREAMS = {
    "hololens/pv": "blob",
    "hololens/gyroscope": "records",
    "hololens/spatial_input": "records",
    "clock/hololens": "records",
    "hololens/depth_ahat": "frames",
}


CASES = [(stream, layout, False) for stream, layout in STREAMS.items()]


def test_depth_that_came_too_fast_is_compressed_when_it_is_packed(tmp_path, reader):
    """Chunks of one stream, some sealed in a hurry: all are read, and so is their archive, which is compressed."""
    if compressor() is None:
        pytest.skip("isal is not here")
    stream = "hololens/depth_ahat"
    truth = payloads_of(stream, 6)
    folder = tmp_path / stream
    folder.mkdir(parents=True)
    for number, payload in enumerate(truth):
        packets = [Packet(number, 5, 10 * number, 100 * number, 1, payload, bytes(64))]
        seal(folder, number + 1, packets, {"stream": stream}, hurried=number in (0, 3))
    sizes = [path.stat().st_size for path in sorted(folder.iterdir())]
    assert min(sizes[0], sizes[3]) > len(truth[0]) > max(*sizes[1:3], *sizes[4:])
    write_json(
        tmp_path / "recording.json",
        {
            "schema": "recording/1",
            "recording": "x",
            "state": "complete",
            "files": {f"{stream}/x.h5": {"sha256": ""}},
        },
    )
    archive_stream(tmp_path, stream)
    (packed,) = folder.iterdir()
    assert [payload for _, payload in reader["packets"](packed)] == truth
    assert packed.stat().st_size < sum(sizes[1:3]) * 3.5


@pytest.mark.parametrize(
    ("stream", "layout", "compressed"), [*CASES, ("hololens/depth_ahat", "frames", True)]
)
def test_the_page_reads_chunks_and_archives(tmp_path, reader, monkeypatch, stream, layout, compressed):
    if compressed and compressor() is None:
        pytest.skip("isal is not here")
    if not compressed:
        monkeypatch.setattr(chunk_module, "compressor", lambda: None)
    truth = payloads_of(stream, 9)
    folder = tmp_path / stream
    folder.mkdir(parents=True)
    for number in range(3):
        packets = [
            Packet(n, 5, 10 * n, 100 * n, 1, truth[n], bytes(64)) for n in range(3 * number, 3 * number + 3)
        ]
        seal(folder, number + 1, packets, {"stream": stream, "recording": "u"})

    def read() -> list[bytes]:
        files = reader["sealed_files"](folder)
        return [payload for path in files for _, payload in reader["packets"](path)]

    assert read() == truth
    kept = tmp_path / "kept"
    shutil.copytree(folder, kept)
    write_json(
        tmp_path / "recording.json",
        {
            "schema": "recording/1",
            "recording": "x",
            "state": "complete",
            "files": {f"{stream}/x.h5": {"sha256": ""}},
        },
    )
    archive_stream(tmp_path, stream)
    assert [path.name for path in folder.iterdir()] == ["000001-000003.h5"]
    assert read() == truth
    for chunk in kept.iterdir():
        shutil.copy(chunk, folder)  # as if an archive run had died before it removed them
    assert read() == truth
    with h5py.File(folder / "000001-000003.h5") as file:
        assert file.attrs["layout"].decode() == layout
        assert file.attrs["kind"] == b"archive"
        assert INDEX.itemsize == 52 == file["index"].dtype.itemsize


def test_every_chunk_carries_its_constants(tmp_path):
    sealed = seal(
        tmp_path, 1, [Packet(7, 1, 0, 0, 1, b"x", b"")], {"stream": "hololens/pv", "recording": "u"}
    )
    page = PAGE.read_text(encoding="utf-8")
    with h5py.File(sealed.path) as file:
        for name in file.attrs:
            assert f"`{name}`" in page, f"attribute {name} is not on the page"
        assert (file.attrs["first_seq"], file.attrs["last_seq"], file.attrs["count"]) == (7, 7, 1)
        assert file.attrs["schema"] == b"chunk/2"


def test_columns_of_an_imu_are_typed_for_stock_h5py(tmp_path):
    from kitchensync.sensors.hololens.streams.inertial_samples import SAMPLE

    samples = np.zeros(6, SAMPLE)
    samples["xyz"] = np.arange(18, dtype=np.float32).reshape(6, 3)
    rows = [Packet(n, 1, n, n, 1, samples[2 * n : 2 * n + 2].tobytes(), b"") for n in range(3)]
    sealed = seal(tmp_path, 1, rows, {"stream": "hololens/gyroscope"})
    with h5py.File(sealed.path) as file:
        assert file["records"]["xyz"].tolist() == samples["xyz"].tolist()
        assert file["records"]["vinyl_ns"].dtype == np.int64


def test_packets_that_do_not_fit_their_layout_are_stored_all_the_same(tmp_path, reader):
    odd = [b"x" * 33, b"", b"y" * 64]
    rows = [Packet(n, 1, n, n, 1, payload, b"") for n, payload in enumerate(odd)]
    sealed = seal(tmp_path, 1, rows, {"stream": "hololens/gyroscope"})
    assert [payload for _, payload in reader["packets"](sealed.path)] == odd

"""A sealed chunk read back by stock h5py and by us; damage is found and located."""

from __future__ import annotations

import errno
import fcntl
import os
import zlib
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sealed_chunks import image_of

from kitchensync.storage.chunks.chunk_reader import Chunk, chunk_paths
from kitchensync.storage.chunks.chunk_writer import Packet, seal
from kitchensync.storage.errors import BadChunk


def make(payloads: list[bytes], *, pose: bool = False, first: int = 0) -> list[Packet]:
    """Packets with these payloads, one every millisecond."""
    poses = [np.full(16, n, np.float32).tobytes() if pose else b"" for n in range(len(payloads))]
    return [
        Packet(first + n, 7, 1000 + n, 10**15 + n * 10**6, 1, payload, poses[n])
        for n, payload in enumerate(payloads)
    ]


@pytest.mark.slow
@given(st.lists(st.binary(max_size=300), min_size=1, max_size=40), st.integers(1, 500))
def test_payloads_come_back_whatever_the_read_step(tmp_path_factory, payloads, step):
    folder = tmp_path_factory.mktemp("chunk")
    sealed = seal(folder, 1, make(payloads), {"stream": "x"})
    with Chunk(sealed.path) as chunk:
        assert list(chunk.payloads(step_bytes=step)) == payloads
        assert [chunk.payload(row) for row in range(len(payloads))] == payloads
        assert chunk.damage() == []
    assert sealed.count == len(payloads)


def test_stock_h5py_reads_a_chunk_with_the_documented_layout(tmp_path):
    payloads = [b"one", b"", b"three" * 1000]
    sealed = seal(tmp_path, 12, make(payloads, pose=True, first=5), {"stream": "hololens/pv"})
    assert sealed.path.name == "000012.h5"
    with h5py.File(sealed.path) as file:
        rows = file["index"][:]
        got = [file["data"][row["offset"] : row["offset"] + row["size"]].tobytes() for row in rows]
        assert got == payloads
        assert [zlib.crc32(payload) for payload in payloads] == rows["crc32"].tolist()
        assert rows["seq"].tolist() == [5, 6, 7]
        assert file["pose"].shape == (3, 16)
        assert file["pose"][2, 0] == 2
        assert file.attrs["stream"].decode() == "hololens/pv"


def test_a_sealed_file_is_read_where_no_lock_can_be_had(tmp_path):
    """A store without locks refuses one, as a file does that another holds."""
    sealed = seal(tmp_path, 1, make([b"one"]), {})
    with sealed.path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(OSError, match="lock"):
            h5py.File(sealed.path, "r", locking=True)
        with Chunk(sealed.path) as chunk:
            assert list(chunk.payloads()) == [b"one"]
            assert chunk.damage() == []


def test_a_flipped_bit_is_located(tmp_path):
    sealed = seal(tmp_path, 1, make([b"a" * 50, b"b" * 50, b"c" * 50]), {})
    content = bytearray(sealed.path.read_bytes())
    content[content.index(b"b" * 50) + 3] ^= 1
    sealed.path.write_bytes(content)
    with Chunk(sealed.path) as chunk:
        assert chunk.damage() == ["packet 1"]


@pytest.mark.slow
def test_every_flipped_bit_of_index_or_pose_is_noticed(tmp_path):
    packets = make([b"payload"] * 3, pose=True)
    whole = image_of(packets, {})
    with h5py.File(seal(tmp_path, 1, packets, {}).path) as file:
        offsets = {name: file[name].id.get_offset() for name in ("index", "pose")}
        sizes = {name: file[name].id.get_storage_size() for name in ("index", "pose")}
    for name, offset in offsets.items():
        for byte in range(offset, offset + sizes[name]):
            broken = bytearray(whole)
            broken[byte] ^= 0x10
            path = tmp_path / "broken.h5"
            path.write_bytes(broken)
            with Chunk(path) as chunk:
                assert chunk.damage() == [name]


def test_a_file_that_is_no_chunk_is_named(tmp_path):
    path = tmp_path / "000001.h5"
    path.write_bytes(b"not hdf5")
    with pytest.raises(BadChunk, match="000001.h5: damaged chunk"):
        Chunk(path)


def test_parts_and_strangers_are_no_chunks(tmp_path):
    for name in ("000002.h5", "000001.h5", "000003.h5.part", "notes.h5", "1000000.h5"):
        (tmp_path / name).touch()
    assert [path.name for path in chunk_paths(tmp_path)] == ["000001.h5", "000002.h5", "1000000.h5"]


@pytest.mark.parametrize("failing", ["fsync", "rename"])
def test_a_failed_write_leaves_nothing_under_the_final_name_and_no_part(tmp_path, monkeypatch, failing):
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, failing, fail)
    with pytest.raises(OSError, match="No space"):
        seal(tmp_path, 1, make([b"content"]), {})
    assert list(tmp_path.iterdir()) == []


def test_a_sealed_file_has_the_hash_it_says(tmp_path: Path):
    import hashlib

    sealed = seal(tmp_path, 1, make([b"x" * 1000]), {})
    assert hashlib.sha256(sealed.path.read_bytes()).hexdigest() == sealed.sha256
    assert sealed.path.stat().st_size == sealed.bytes

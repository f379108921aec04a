"""Checksums of a file's blocks, whether it is read from the disk or passes by in pieces of any size."""

from __future__ import annotations

import zlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kitchensync.storage.disk.media_blocks import BlockChecksums, block_checksums


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=8))
def test_pieces_of_any_size_give_the_same_blocks(data: bytes, cuts: list[int]) -> None:
    blocks = BlockChecksums(16)
    blocks.update(b"what came before the file began anew")
    blocks.restart()
    for first, last in pairwise(sorted({0, len(data), *(min(cut, len(data)) for cut in cuts)})):
        blocks.update(memoryview(data)[first:last])
    expected = [zlib.crc32(data[at : at + 16]) for at in range(0, len(data), 16)]
    assert blocks.as_dict() == {"block_bytes": 16, "crc32": expected}


@pytest.mark.parametrize("size", [0, 1, (4 << 20) - 1, 4 << 20, (8 << 20) + 5])
def test_the_file_on_disk_says_the_same(tmp_path, size: int) -> None:
    data = bytes(range(251)) * (size // 251 + 1)
    (tmp_path / "film").write_bytes(data[:size])
    blocks = BlockChecksums()
    blocks.update(data[:size])
    assert block_checksums(tmp_path / "film") == blocks.as_dict()

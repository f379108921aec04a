"""The fast ways to a checksum and to HDF5's shuffle give what the plain ones give."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kitchensync.storage.chunks.compress import shuffled
from kitchensync.storage.disk.checksum import crc32


@given(st.binary(max_size=5000))
def test_crc32_is_zlibs(data: bytes) -> None:
    assert crc32(data) == zlib.crc32(data)
    assert crc32(memoryview(data)) == zlib.crc32(data)


def test_crc32_of_a_large_picture() -> None:
    picture = np.random.default_rng(1).integers(0, 256, 1 << 20, np.uint8)
    assert crc32(memoryview(picture)) == zlib.crc32(picture)


@pytest.mark.parametrize("word_bytes", [1, 2, 4, 8])
def test_shuffle_puts_the_same_byte_of_all_words_together(word_bytes: int) -> None:
    frame = np.random.default_rng(word_bytes).integers(0, 256, 4096, np.uint8).tobytes()
    by_hand = b"".join(frame[place::word_bytes] for place in range(word_bytes))
    assert bytes(shuffled(frame, word_bytes)) == by_hand

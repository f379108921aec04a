"""Zdepth blobs: checked by their header and stored as sent; decoding is left to a function of the user.

`catid/Zdepth` (BSD) has no Python package to depend on. A program with a build of it calls `use_decoder(function)`
with a function from a blob to a (height, width) uint16 array in millimetres, which reading depth then uses.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from kitchensync.sensors.errors import BadPacket

MAGIC = 0xCA  # first byte of every blob
HEADER = struct.Struct("<BBHHH8I")
KEY_FRAME = 1  # bit 0 of the flags; the headset sends only key frames
PARTS = ("zeroes", "blocks", "edges", "surfaces")

Decoder = Callable[[bytes], np.ndarray]


class ZdepthHeader(NamedTuple):
    """The first 40 bytes of a blob."""

    is_key_frame: bool
    frame_number: int
    width: int
    height: int
    uncompressed: tuple[int, ...]
    "Bytes of the four `PARTS` after decompression."
    compressed: tuple[int, ...]
    "Bytes of the four `PARTS` (Zstd) in the blob, in this order after the header."


def header(blob: memoryview | bytes) -> ZdepthHeader:
    """Read and check a blob's header. Raises `BadPacket` if it is invalid or its sizes do not fill the blob."""
    if len(blob) < HEADER.size:
        raise BadPacket("zdepth", f"{len(blob)} bytes, fewer than the {HEADER.size} of a header")
    magic, flags, number, width, height, *sizes = HEADER.unpack_from(blob)
    if magic != MAGIC:
        raise BadPacket("zdepth", f"begins with {magic:#x} instead of {MAGIC:#x}")
    compressed = tuple(sizes[1::2])
    if HEADER.size + sum(compressed) != len(blob):
        raise BadPacket("zdepth", f"parts of {sum(compressed)} bytes in a blob of {len(blob)}")
    if not width or not height:
        raise BadPacket("zdepth", f"{width}x{height} pixels")
    return ZdepthHeader(bool(flags & KEY_FRAME), number, width, height, tuple(sizes[::2]), compressed)


_decoders: list[Decoder] = []


def use_decoder(decoder: Decoder | None) -> None:
    """Decode blobs with this function from now on; None removes it."""
    _decoders.clear()
    if decoder is not None:
        _decoders.append(decoder)


def depth(blob: memoryview | bytes) -> np.ndarray:
    """Decode a blob to (height, width) uint16 mm, 0 = invalid. Raises `BadPacket`, also without a decoder."""
    head = header(blob)
    if not _decoders:
        raise BadPacket("zdepth", "no decoder is set (kitchensync.sensors.hololens.zdepth.use_decoder)")
    picture = _decoders[0](bytes(blob))
    if picture.shape != (head.height, head.width):
        raise BadPacket("zdepth", f"the decoder returned {picture.shape} for {head.width}x{head.height}")
    return picture.astype(np.uint16, copy=False)

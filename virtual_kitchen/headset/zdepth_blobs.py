"""Blobs in the frame of Zdepth: a true header and four Zstd parts.

The parts hold the depth picture itself, not Zdepth's own prediction, so only the framing can be tested with them.
"""

import struct

import numpy as np
import numpy.typing as npt
import pyarrow as pa

MAGIC, KEY_FRAME = 0xCA, 1
_HEADER = struct.Struct("<BBHHH8I")


def blob(depth_mm: npt.NDArray[np.uint16], number: int) -> bytes:
    """Return a picture (height, width) as a blob: zeroes, blocks, edges, surfaces."""
    codec = pa.Codec("zstd")
    zeroes = np.packbits(depth_mm == 0).tobytes()
    plain = (zeroes, b"\0" * 8, b"\0" * 8, depth_mm.tobytes())
    parts = [codec.compress(part, asbytes=True) for part in plain]
    sizes = [size for raw, part in zip(plain, parts, strict=True) for size in (len(raw), len(part))]
    height, width = depth_mm.shape
    return _HEADER.pack(MAGIC, KEY_FRAME, number & 0xFFFF, width, height, *sizes) + b"".join(parts)

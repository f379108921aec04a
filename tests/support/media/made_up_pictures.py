"""Pictures that somebody made up to take memory."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path


def piece(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def black(path: Path, side: int) -> Path:
    """A PNG of one bit a pixel without any light: 65,000 x 65,000 pixels in 0.6 MB."""
    head = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    packer = zlib.compressobj(9)
    row = bytes(1 + (side + 7) // 8)
    rows = b"".join(packer.compress(row) for _ in range(side)) + packer.flush()
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + piece(b"IHDR", head) + piece(b"IDAT", rows) + piece(b"IEND", b""))
    return path

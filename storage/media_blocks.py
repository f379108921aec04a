"""Checksums of the blocks of a large file, so that damage is found in a stretch of it and not just in the file."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BLOCK_BYTES = 4 << 20

Blocks = dict[str, Any]
"""{"block_bytes": int, "crc32": [int, ...]}: one CRC-32 a block, the last block may be shorter."""


def block_checksums(path: Path) -> Blocks:
    """Read a file once and return the checksums of its blocks, as `media.json` keeps them under `blocks`."""
    return {"block_bytes": BLOCK_BYTES, "crc32": list(_checksums(path, BLOCK_BYTES))}


def damaged_stretches(path: Path, blocks: Blocks) -> list[str]:
    """Name the blocks of a file that do not agree, as `bytes <first>-<last>`."""
    size, length = path.stat().st_size, int(blocks["block_bytes"])
    found = []
    for number, (here, promised) in enumerate(zip(_checksums(path, length), blocks["crc32"], strict=False)):
        if here != promised:
            found.append(f"bytes {number * length}-{min((number + 1) * length, size) - 1}")
    return found


def _checksums(path: Path, length: int) -> Iterator[int]:
    with path.open("rb") as file:
        while block := file.read(length):
            yield zlib.crc32(block)

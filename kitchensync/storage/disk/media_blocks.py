"""Checksums of the blocks of a large file, so that damage is found in a stretch of it and not just in the file."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kitchensync.storage.manifest_form import BlocksForm

BLOCK_BYTES = 4 << 20


def block_checksums(path: Path) -> BlocksForm:
    """Read a file once and return the checksums of its blocks, as `media.json` keeps them under `blocks`."""
    return {"block_bytes": BLOCK_BYTES, "crc32": list(_checksums(path, BLOCK_BYTES))}


class BlockChecksums:
    """The same while the file passes by, so that it need not be read again."""

    def __init__(self, block_bytes: int = BLOCK_BYTES) -> None:
        """Begin at its first byte."""
        self._block_bytes = block_bytes
        self.restart()

    def restart(self) -> None:
        """Forget everything: the file begins anew."""
        self._done: list[int] = []
        self._crc = self._filled = 0

    def update(self, block: memoryview | bytes, /) -> None:
        """Take the next bytes."""
        at = 0
        while at < len(block):
            part = block[at : at + self._block_bytes - self._filled]
            self._crc = zlib.crc32(part, self._crc)
            self._filled += len(part)
            at += len(part)
            if self._filled == self._block_bytes:
                self._done.append(self._crc)
                self._crc = self._filled = 0

    def as_dict(self) -> BlocksForm:
        """Return what `block_checksums` would."""
        last = [self._crc] if self._filled else []
        return {"block_bytes": self._block_bytes, "crc32": [*self._done, *last]}


def damaged_stretches(path: Path, blocks: BlocksForm) -> list[str]:
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

"""Prove an archive against the chunks that it was packed from, read back past the page cache."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kitchensync.shell.files_on_disk import file_sha256
from kitchensync.storage.chunks.chunk_reader import UNREADABLE, Chunk
from kitchensync.storage.disk.read_back import forget_cache
from kitchensync.storage.errors import BadChunk
from kitchensync.storage.names import chunk_number


def prove(path: Path, chunks: list[Path], tell: Callable[[Path], None] = lambda _: None) -> None:
    """Read the archive back past the page cache: every block must be what was sealed. Raises BadChunk."""
    forget_cache(path)
    originals = {chunk_number(chunk): chunk for chunk in chunks}
    try:
        with Chunk(path) as packed:
            if damage := packed.damage():
                raise BadChunk(path, ", ".join(damage))
            poses = packed.poses
            for block in packed.blocks:
                first, last = int(block["first_row"]), int(block["first_row"]) + int(block["rows"])
                digest = hashlib.sha256()
                for payload in packed.payloads(first, last):
                    digest.update(payload)
                if digest.hexdigest() != block["payload_sha256"].decode():
                    raise BadChunk(path, f"block {block['number']} is not what was sealed")
                if original := originals.get(int(block["number"])):
                    part = None if poses is None else poses[first:last]
                    _same_rows(path, packed.index[first:last], part, block, original)
                    tell(original)
    except UNREADABLE as error:
        raise BadChunk(path, str(error)) from error


def _same_rows(path: Path, rows: npt.NDArray[np.void], poses: Any, block: Any, original: Path) -> None:
    """Compare file hash, index and poses of one block with the chunk that is still there."""
    if file_sha256(original) != block["file_sha256"].decode():
        raise BadChunk(original, f"it is not the file that {path.name} was packed from")
    with Chunk(original) as chunk:
        moved = chunk.index.copy()
        if len(moved):
            moved["offset"] += rows["offset"][0] - moved["offset"][0]
        same_poses = poses is None or (chunk.poses is not None and np.array_equal(poses, chunk.poses))
        if rows.tobytes() != moved.tobytes() or not same_poses:
            raise BadChunk(path, f"block {block['number']} has not the index or poses that were sealed")

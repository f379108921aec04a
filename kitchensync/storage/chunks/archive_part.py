"""Write an archive anew without some of the chunks that were packed into it; all others as they were."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np

from kitchensync.storage.chunks.archive_file import OWN_ATTRIBUTES, create_stretch, layout_in
from kitchensync.storage.chunks.chunk_reader import Chunk
from kitchensync.storage.chunks.chunk_writer import describe_file, set_attribute
from kitchensync.storage.chunks.compress import create_compressed, read_frame, write_frame
from kitchensync.storage.chunks.layout import ARCHIVE, Frames
from kitchensync.storage.disk.checksum import crc32


def write_without(part: Path, archive: Path, numbers: set[int]) -> None:
    """Write `archive` without the blocks of these chunks into a new file, not synced. Raises BadChunk, OSError."""
    with Chunk(archive) as old, h5py.File(part, "w", locking=False) as file:
        blocks = old.blocks[~np.isin(old.blocks["number"], sorted(numbers))]
        spans = [(int(one["first_row"]), int(one["first_row"] + one["rows"])) for one in blocks]
        rows = np.concatenate([np.arange(*span) for span in spans])
        index, poses = old.index[rows], old.poses
        sizes = index["size"].astype(np.uint64)
        index["offset"] = np.cumsum(sizes) - sizes
        blocks["first_row"] = np.cumsum(blocks["rows"]) - blocks["rows"]
        layout, compressed = layout_in(old)
        if isinstance(layout, Frames):
            source = old.dataset("frames")
            for name in ("head", "tail"):
                file.create_dataset(name, data=old.dataset(name)[:][rows])
            if compressed:
                frames = create_compressed(file, "frames", len(rows), layout.frame)
            else:
                frames = file.create_dataset("frames", (len(rows), *layout.frame.shape), layout.frame.base)
            for place, row in enumerate(rows.tolist()):
                if compressed:
                    write_frame(frames, place, read_frame(source, row))
                else:
                    frames[place] = source[row]
        else:
            target = create_stretch(file, layout, index)
            _write_stretch(target, (old.payloads(*span) for span in spans))
        file.create_dataset("index", data=index)
        file.attrs["index_crc32"] = crc32(index.tobytes())
        if poses is not None:
            kept = poses[rows].reshape(-1, 16)
            file.create_dataset("pose", data=kept)
            file.attrs["pose_crc32"] = crc32(kept.tobytes())
        file.create_dataset("blocks", data=blocks)
        describe_file(file.attrs, ARCHIVE, layout, index)
        for key, value in old.attributes.items():
            if key not in OWN_ATTRIBUTES:
                set_attribute(file.attrs, key, value)


def _write_stretch(target: h5py.Dataset, spans: Iterator[Iterator[bytes]]) -> None:
    record, at = target.dtype, 0
    for payloads in spans:
        for payload in payloads:
            count = len(payload) // record.itemsize
            target[at : at + count] = np.frombuffer(payload, record)
            at += count

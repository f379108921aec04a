"""Open HDF5 datasets only if their data is in the file itself and their size is plausible.

HDF5 follows links into other files, reads raw bytes of any path that a file names, and expands tiny files to
gigabytes of fill values or decompressed data.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

import h5py

from kitchensync.shell.files_on_disk import check_plain
from kitchensync.storage.errors import BadChunk

MOST_DEFLATED = 1032
"""Largest expansion ratio of deflate."""
MOST_OF_LARGE = 200
"""Largest expansion ratio of large tables: each small piece has a header, and no sensor sends only zeros."""
MOST_PIECE_BYTES = 64 << 20
"""Limit of a compressed piece, bytes: an image, or 32 KiB of records."""
SMALL_BYTES = 64 << 20
"""Size up to which a table is read without a check of its ratio, bytes."""
MOST_TIMES = 16
"""Largest ratio of a compressing file system for an index, which is full of checksums."""


def open_hdf5(path: Path) -> h5py.File:
    """Open a file of its own for reading. Raises NotPlainFile, OSError."""
    check_plain(path)
    return h5py.File(path, "r", locking=False)  # sealed: some stores have no locks


def own_dataset(file: h5py.File, name: str) -> h5py.Dataset:
    """Return a dataset in the root of a file. Raises BadChunk if it is not completely in this file."""
    try:
        if file.id.links.get_info(name.encode()).type != h5py.h5l.TYPE_HARD:
            raise ValueError(f"{name} is a link")
        dataset = h5py.h5d.open(file.id, name.encode())
        plan = dataset.get_create_plist()
        # Before the shape: reading the shape of a virtual dataset opens other files.
        layout = plan.get_layout()
        if layout == h5py.h5d.VIRTUAL or plan.get_external_count():
            raise ValueError(f"{name} lies in other files")
        kind = dataset.get_type()
        if kind.detect_class(h5py.h5t.VLEN) or kind.detect_class(h5py.h5t.REFERENCE):
            raise ValueError(f"{name} has no fixed size")
        size, stored = math.prod(dataset.shape) * kind.get_size(), dataset.get_storage_size()
        if layout == h5py.h5d.CHUNKED:
            piece = math.prod(plan.get_chunk()) * kind.get_size()
            most = MOST_DEFLATED if size <= SMALL_BYTES or len(dataset.shape) > 1 else MOST_OF_LARGE
            is_held = size <= most * stored and piece <= MOST_PIECE_BYTES
        else:
            is_held = size <= stored <= os.fstat(file.id.get_vfd_handle()).st_size
        if not is_held:
            raise ValueError(f"{name} declares {size} bytes, more than the file has")
        return h5py.Dataset(dataset)
    except (KeyError, ValueError, RuntimeError, OSError) as error:
        raise BadChunk(Path(file.filename), str(error)) from error


def whole_table(file: h5py.File, name: str, most_rows: int | None = None) -> h5py.Dataset:
    """Return a dataset to read as a whole: not compressed, not sparse, at most `most_rows` rows. Raises BadChunk."""
    dataset = own_dataset(file, name)
    if dataset.chunks is not None:
        raise BadChunk(Path(file.filename), f"{name} does not lie in one piece")
    if most_rows is not None and len(dataset) > most_rows:
        raise BadChunk(Path(file.filename), f"{name} has {len(dataset)} rows for {most_rows} packets")
    if (size := dataset.id.get_storage_size()) > SMALL_BYTES:
        facts = os.fstat(file.id.get_vfd_handle())
        if facts.st_blocks * 512 * MOST_TIMES < size:
            raise BadChunk(Path(file.filename), f"{name} is a hole in the file")
    return dataset

"""Datasets of an HDF5 file that lie in the file itself, and are no larger than what it holds.

HDF5 follows links into other files, reads raw bytes of whatever path a file names, and makes up gigabytes of fill
values or of what was compressed from nothing.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

import h5py

from kitchensync.shell.files_on_disk import open_plain
from kitchensync.storage.errors import BadChunk

MOST_DEFLATED = 1032
"""Bytes that a byte of deflate data becomes at most."""
MOST_OF_LARGE = 200
"""The same of a table of some size: each of its small pieces has a header, and no sensor sends only zeros."""
MOST_PIECE_BYTES = 64 << 20
"""Of what is compressed together: a picture, or 32 KiB of records."""
SMALL_BYTES = 64 << 20
"""A table of this size is read whatever it is made of."""
MOST_TIMES = 16
"""A file system that compresses stores an index in no less than a part of its size: it is full of checksums."""


def open_hdf5(path: Path) -> h5py.File:
    """Open a file of its own for reading. Raises NotPlainFile, OSError."""
    open_plain(path).close()
    return h5py.File(path, "r", locking=False)  # sealed: some stores have no locks


def own_dataset(file: h5py.File, name: str) -> h5py.Dataset:
    """Return a dataset of the root of a file. Raises BadChunk where it is not all in this file."""
    try:
        if file.id.links.get_info(name.encode()).type != h5py.h5l.TYPE_HARD:
            raise ValueError(f"{name} is a link")
        found = h5py.h5d.open(file.id, name.encode())
        plan = found.get_create_plist()
        layout = plan.get_layout()  # asked first: a virtual dataset opens other files when its shape is asked
        if layout == h5py.h5d.VIRTUAL or plan.get_external_count():
            raise ValueError(f"{name} lies in other files")
        kind = found.get_type()
        if kind.detect_class(h5py.h5t.VLEN) or kind.detect_class(h5py.h5t.REFERENCE):
            raise ValueError(f"{name} has no fixed size")
        size, stored = math.prod(found.shape) * kind.get_size(), found.get_storage_size()
        if layout == h5py.h5d.CHUNKED:
            piece = math.prod(plan.get_chunk()) * kind.get_size()
            most = MOST_DEFLATED if size <= SMALL_BYTES or len(found.shape) > 1 else MOST_OF_LARGE
            is_held = size <= most * stored and piece <= MOST_PIECE_BYTES
        else:
            is_held = size <= stored <= os.fstat(file.id.get_vfd_handle()).st_size
        if not is_held:
            raise ValueError(f"{name} is said to hold {size} bytes, which the file does not hold")
        return h5py.Dataset(found)
    except (KeyError, ValueError, RuntimeError, OSError) as error:
        raise BadChunk(Path(file.filename), str(error)) from error


def whole_table(file: h5py.File, name: str, most_rows: int | None = None) -> h5py.Dataset:
    """Return a dataset that is read whole: not compressed, no holes, at most so many rows. Raises BadChunk."""
    path = Path(file.filename)
    found = own_dataset(file, name)
    if found.chunks is not None:
        raise BadChunk(path, f"{name} does not lie in one piece")
    if most_rows is not None and len(found) > most_rows:
        raise BadChunk(path, f"{name} has {len(found)} rows for {most_rows} packets")
    if found.nbytes > SMALL_BYTES:
        facts = os.fstat(file.id.get_vfd_handle())
        if facts.st_blocks * 512 * MOST_TIMES < found.nbytes:
            raise BadChunk(path, f"{name} is a hole in the file")
    return found

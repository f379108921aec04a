"""Lossless compression that stock HDF5 reads back: shuffle, then deflate; of pictures made by ISA-L where it is.

Any HDF5 library undoes both filters by itself. zlib's own deflate is six times too slow for a raw depth
camera; ISA-L's (package `isal`) takes 1.4 ms of CPU a MB. Where it has no build, pictures stay uncompressed.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from typing import Any

import h5py
import numpy as np

LEVEL = 1
FILTERS = {"shuffle": True, "compression": "gzip", "compression_opts": LEVEL}
PIECE_BYTES = 32 << 10
"""Records that are compressed together: so many are lost with one flipped bit."""

Compressor = Callable[[Any], bytes]


@cache
def compressor() -> Compressor | None:
    """Return the fast deflate of this computer, or None where there is none."""
    try:
        isal_zlib = importlib.import_module("isal.isal_zlib")
    except ImportError:
        return None
    return lambda data: bytes(isal_zlib.compress(data, LEVEL))


def shuffled(frame: memoryview | bytes, word_bytes: int) -> memoryview:
    """Put the first bytes of all words first, then all second bytes: HDF5's shuffle filter."""
    words = np.frombuffer(frame, f"<u{word_bytes}")
    planes = np.empty((word_bytes, len(words)), np.uint8)
    for place, plane in enumerate(planes):  # five times faster than turning a matrix of bytes
        np.right_shift(words, 8 * place, out=plane, casting="unsafe")
    return planes.data.cast("B")


def create_compressed(file: h5py.File, name: str, count: int, frame: np.dtype) -> h5py.Dataset:
    """Make an empty dataset (count, *frame.shape), a chunk a frame, of shuffle and deflate."""
    return file.create_dataset(
        name, shape=(count, *frame.shape), dtype=frame.base, chunks=(1, *frame.shape), **FILTERS
    )


def create_records(file: h5py.File, name: str, count: int, record: np.dtype) -> h5py.Dataset:
    """Make an empty dataset of `count` records, shuffled and deflated by HDF5 itself in pieces."""
    rows = min(count, max(1, PIECE_BYTES // record.itemsize))
    if not rows:
        return file.create_dataset(name, (0,), record)
    return file.create_dataset(name, (count,), record, chunks=(rows,), **FILTERS)


def write_frame(dataset: h5py.Dataset, number: int, content: bytes) -> None:
    """Put a frame that is shuffled and deflated already into its place."""
    dataset.id.write_direct_chunk((number, *[0] * (dataset.ndim - 1)), content)


def quick_deflater() -> Any | None:
    """Return a `zlib.compressobj` for bare deflate data that takes little CPU; None where ISA-L has no build."""
    try:
        isal_zlib = importlib.import_module("isal.isal_zlib")
    except ImportError:
        return None
    return isal_zlib.compressobj(LEVEL, isal_zlib.DEFLATED, -15)


def put_frame(dataset: h5py.Dataset, number: int, frame: memoryview) -> None:
    """Compress the bytes of a picture into its place: by the fast deflate, or where there is none by HDF5's own."""
    compress = compressor()
    if compress is None:
        dataset[number] = np.frombuffer(frame, dataset.dtype).reshape(dataset.shape[1:])
    else:
        write_frame(dataset, number, compress(shuffled(frame, dataset.dtype.itemsize)))


def read_frame(dataset: h5py.Dataset, number: int) -> bytes:
    """Read a frame as it lies in the file, still shuffled and deflated."""
    _, content = dataset.id.read_direct_chunk((number, *[0] * (dataset.ndim - 1)))
    return bytes(content)

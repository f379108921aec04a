"""Arrays by name in one `.npz`, written one after another: a file may hold more than fits into memory.

Only plain arrays: `numpy.load(file)` reads them without pickle. The same arrays give the same bytes.
"""

from __future__ import annotations

import lzma
import tokenize
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.npyio import NpzFile

from kitchensync.shell.files_on_disk import open_file
from kitchensync.storage.chunks.compress import quick_deflater

MADE_OF = "made_of"
"""Name of the text that says what a file was made of."""
_EPOCH = (1980, 1, 1, 0, 0, 0)
_FAST = 1
_LARGE = 1 << 30
ALWAYS_TAKEN, MOST_RATIO = 256 << 20, 100
"""Bytes that a file may unpack to, and how many times those that it has; ours are packed to a tenth."""
DAMAGED = (
    OSError,
    ValueError,
    EOFError,
    KeyError,
    TypeError,
    AttributeError,
    MemoryError,
    RuntimeError,  # a flipped bit that asks for a password, or for a compression that nobody knows
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    SyntaxError,
    tokenize.TokenError,
)
"""What reading arrays of others may raise; `MemoryError` where a head claims more than any computer has."""


@dataclass(frozen=True)
class Blocks:
    """An array whose rows come one block after another; `shape` says how many there will be."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    blocks: Iterable[npt.NDArray[Any]]


class ArraysFile(AbstractContextManager["ArraysFile"]):
    """An `.npz` that is being written."""

    def __init__(self, path: Path, made_of: str) -> None:
        """Open `path` as it is named: give the part of an output. Raises OSError."""
        self._zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=_FAST)
        self.add(MADE_OF, np.array(made_of))

    def __exit__(self, *_: object) -> None:
        """Write the list of what is in it."""
        self._zip.close()

    def add(self, name: str, values: npt.NDArray[Any] | Blocks) -> None:
        """Add an array; one of Python objects, or of another length than promised, is refused with ValueError."""
        about = zipfile.ZipInfo(f"{name}.npy", _EPOCH)
        about.compress_type, about.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
        size = prod(values.shape) * values.dtype.itemsize
        member: Any
        with self._zip.open(about, "w", force_zip64=size > _LARGE) as member:
            if (quick := quick_deflater()) is not None and hasattr(member, "_compressor"):
                member._compressor = quick
            if isinstance(values, Blocks):
                form = np.lib.format.dtype_to_descr(values.dtype)
                header = {"descr": form, "fortran_order": False, "shape": values.shape}
                np.lib.format.write_array_header_1_0(member, header)
                rows = 0
                for block in values.blocks:
                    member.write(np.ascontiguousarray(block, values.dtype).data.cast("B"))
                    rows += len(block)
                if rows != values.shape[0]:
                    raise ValueError(f"{name}: {rows} rows instead of {values.shape[0]}")
            else:
                np.lib.format.write_array(member, np.asarray(values, order="C"), allow_pickle=False)


@contextmanager
def open_arrays(path: Path) -> Iterator[NpzFile]:
    """Open an `.npz` without pickle; refuse arrays far larger than their file together. Raises one of DAMAGED."""
    with open_file(path) as file, zipfile.ZipFile(file) as archive:
        unpacked = sum(one.file_size for one in archive.infolist())
    if unpacked > max(ALWAYS_TAKEN, MOST_RATIO * path.stat().st_size):
        raise ValueError(f"{path.name} unpacks to {unpacked} bytes, no file of ours does")
    with np.load(path, allow_pickle=False) as arrays:
        yield arrays


def each_array(path: Path) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    """Yield the arrays of a file by name, one at a time. Raises one of DAMAGED."""
    with open_arrays(path) as arrays:
        for name in arrays.files:
            yield name, arrays[name]


def made_of(path: Path) -> str:
    """Return what a file was made of; nothing where it is not there or does not say."""
    try:
        with open_arrays(path) as arrays:
            return str(arrays[MADE_OF])
    except DAMAGED:
        return ""

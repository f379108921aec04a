"""Named arrays in one `.npz`, written sequentially, so that a file may be larger than the memory.

Arrays are plain: `numpy.load(file)` reads them without pickle. Equal arrays result in equal bytes.
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
"""Name of the text about the sources of a file."""
_EPOCH = (1980, 1, 1, 0, 0, 0)  # earliest time in a ZIP; a constant, so that equal arrays give equal bytes
_FAST = 1
_LARGE = 1 << 30  # well below 2 GiB, above which zipfile refuses a member that was not begun as ZIP64
ALWAYS_TAKEN, MOST_RATIO = 256 << 20, 100
"""Maximum unpacked bytes, and maximum ratio to the packed bytes above that; our files are packed to a tenth."""
DAMAGED = (
    OSError,
    ValueError,
    EOFError,
    KeyError,
    TypeError,
    AttributeError,
    MemoryError,
    RuntimeError,  # a flipped bit that means a password, or an unknown compression
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    SyntaxError,
    tokenize.TokenError,
)
"""Errors of reading untrusted arrays; `MemoryError` if the claimed size is too large."""


@dataclass(frozen=True)
class Blocks:
    """An array that is written in blocks of rows; `shape` has the total number of rows."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    blocks: Iterable[npt.NDArray[Any]]


class ArraysFile(AbstractContextManager["ArraysFile"]):
    """An `.npz` that is being written."""

    def __init__(self, path: Path, made_of: str) -> None:
        """Open `path`, the temporary file of an output. Raises OSError."""
        self._zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=_FAST)
        self.add(MADE_OF, np.array(made_of))

    def __exit__(self, *_: object) -> None:
        """Write the directory and close the file."""
        self._zip.close()

    def add(self, name: str, values: npt.NDArray[Any] | Blocks) -> None:
        """Add an array. Raises ValueError for Python objects, or another number of rows than in `shape`."""
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
    """Open an `.npz` without pickle; arrays much larger than the file are refused. Raises one of DAMAGED."""
    with open_file(path) as file, zipfile.ZipFile(file) as archive:
        unpacked = sum(member.file_size for member in archive.infolist())
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
    """Return `made_of` of a file; empty if the file or the value is missing."""
    try:
        with open_arrays(path) as arrays:
            return str(arrays[MADE_OF])
    except DAMAGED:
        return ""

"""Constants of sensors, kept with a recording: one small HDF5 file a stream, named, with unit and frame."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from kitchensync.shell.files_on_disk import matching, sync_path
from kitchensync.storage.chunks.chunk_reader import UNREADABLE
from kitchensync.storage.chunks.chunk_writer import set_attribute
from kitchensync.storage.chunks.own_datasets import open_hdf5, whole_table
from kitchensync.storage.errors import BadChunk

if TYPE_CHECKING:
    from kitchensync.storage.manifest_form import FileFactsForm

SCHEMA = "calibration/1"
CALIBRATION = "calibration"
"""Folder below the device's: `<recording>/hololens/calibration/<stream>.h5`."""


@dataclass(frozen=True)
class ConstantTable:
    """One constant."""

    name: str
    values: np.ndarray | str
    unit: str
    frame: str
    meaning: str


def write_calibration(path: Path, tables: list[ConstantTable], facts: dict[str, Any]) -> None:
    """Write a stream's constants whole, synced and renamed; `facts` become attributes of the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    with h5py.File(part, "w", locking=False) as file:
        for name, value in {"schema": SCHEMA, **facts}.items():
            set_attribute(file.attrs, name, value)
        for table in tables:
            text = isinstance(table.values, str)
            dataset = file.create_dataset(
                table.name, data=np.bytes_(str(table.values).encode() or b"\0") if text else table.values
            )
            for name in ("unit", "frame", "meaning"):
                set_attribute(dataset.attrs, name, getattr(table, name))
    sync_path(part)
    os.replace(part, path)


def read_calibration(path: Path) -> dict[str, ConstantTable]:
    """Read a stream's constants by name. Raises BadChunk when the file is none of ours."""
    try:
        with open_hdf5(path) as file:
            schema = _text(file.attrs.get("schema", ""))
            if schema != SCHEMA:
                raise BadChunk(path, f"schema is {schema!r}, not {SCHEMA!r}")
            tables = {}
            for name in file:
                stored = whole_table(file, name)
                is_text = stored.dtype.kind in "OS" and stored.shape == ()
                unit, frame, meaning = (_text(stored.attrs[word]) for word in ("unit", "frame", "meaning"))
                values = _text(stored[()]) if is_text else stored[()]
                tables[name] = ConstantTable(name, values, unit, frame, meaning)
            return tables
    except UNREADABLE as error:
        raise BadChunk(path, f"is no HDF5 file of constants ({error})") from error


def _text(value: Any) -> str:
    """Read a text of fixed length, or of variable length as early versions wrote it."""
    return value.decode().rstrip("\0") if isinstance(value, bytes) else str(value)


def calibration_files(recording: Path) -> dict[str, FileFactsForm]:
    """Hash the constants of all devices for the manifest: relative path -> {bytes, sha256}."""
    found = {}
    for path in matching(recording, f"*/{CALIBRATION}/*.h5"):
        content = path.read_bytes()
        facts: FileFactsForm = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        found[path.relative_to(recording).as_posix()] = facts
    return found

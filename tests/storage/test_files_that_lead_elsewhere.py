"""HDF5 files that lead out of themselves, or claim more than they hold: refused before anything is read."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from kitchensync.storage.chunks.chunk_reader import Chunk
from kitchensync.storage.chunks.layout import INDEX
from kitchensync.storage.errors import BadChunk
from kitchensync.storage.reading.device_constants import read_calibration

MANY = 40_000_000
SPARSE: dict[str, Any] = {"chunks": (1 << 16,), "compression": "gzip"}
MOST_MORE_KIB = 300 << 10


def external(file: h5py.File, name: str, pipe: Path) -> None:
    shape, kind = file[name].shape, file[name].dtype
    del file[name]
    file.create_dataset(name, shape, kind, external=[(str(pipe), 0, h5py.h5f.UNLIMITED)])


def linked(file: h5py.File, name: str, pipe: Path) -> None:
    del file[name]
    file[name] = h5py.ExternalLink(str(pipe), "/x")


def soft(file: h5py.File, name: str, _: Path) -> None:
    file.move(name, "other")
    file[name] = h5py.SoftLink("/other")


def virtual(file: h5py.File, name: str, pipe: Path) -> None:
    shape, kind = file[name].shape, file[name].dtype
    layout = h5py.VirtualLayout(shape, kind)
    layout[...] = h5py.VirtualSource(str(pipe), "x", shape)
    del file[name]
    file.create_virtual_dataset(name, layout)


def made_of_nothing(file: h5py.File, name: str, _: Path) -> None:
    kind = file[name].dtype
    del file[name]
    file.create_dataset(name, (MANY,), kind, **SPARSE)
    file.attrs["count"] = MANY


def never_written(file: h5py.File, name: str, _: Path) -> None:
    kind = file[name].dtype
    del file[name]
    file.create_dataset(name, (MANY,), kind)
    file.attrs["count"] = MANY


def a_hole(file: h5py.File, name: str, _: Path) -> None:
    kind, plan = file[name].dtype, h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    del file[name]
    plan.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    plan.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    space, its_type = h5py.h5s.create_simple((MANY,)), h5py.h5t.py_create(kind)
    h5py.h5d.create(file.id, name.encode(), its_type, space, plan)
    file.attrs["count"] = MANY


WAYS: dict[str, Callable[[h5py.File, str, Path], None]] = {
    one.__name__: one for one in (external, linked, soft, virtual, made_of_nothing, never_written, a_hole)
}


@pytest.mark.parametrize("name", ["index", "data"])
@pytest.mark.parametrize("way", WAYS)
def test_a_chunk_is_all_in_its_file(finished: Path, way: str, name: str) -> None:
    path, pipe = finished / "hololens" / "pv" / "000001.h5", finished.parent / "pipe"
    os.mkfifo(pipe)
    with h5py.File(path, "r+") as file:
        count = file.attrs["count"]
        WAYS[way](file, name, pipe)
        file.attrs["count"] = count if name == "data" else file.attrs["count"]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if (way, name) == ("a_hole", "data"):  # it is as large as it says: packets are read one by one
        with Chunk(path) as chunk:
            assert chunk.damage()
    else:
        with pytest.raises(BadChunk):
            Chunk(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_MORE_KIB


@pytest.mark.parametrize("way", [*WAYS])
def test_nor_are_poses_read_from_elsewhere(finished: Path, way: str) -> None:
    path, pipe = finished / "hololens" / "pv" / "000001.h5", finished.parent / "pipe"
    os.mkfifo(pipe)
    with h5py.File(path, "r+") as file:
        count = file.attrs["count"]
        WAYS[way](file, "pose", pipe)
        file.attrs["count"] = count
    with Chunk(path) as chunk:
        assert chunk.damage() == ["pose"]
        with pytest.raises(BadChunk):
            _ = chunk.poses


@pytest.mark.parametrize("way", [*WAYS])
def test_constants_are_all_in_their_file(finished: Path, way: str) -> None:
    path, pipe = finished / "hololens" / "calibration" / "pv.h5", finished.parent / "pipe"
    os.mkfifo(pipe)
    with h5py.File(path, "r+") as file:
        WAYS[way](file, "intrinsics", pipe)
    with pytest.raises(BadChunk):
        read_calibration(path)


def test_places_of_packets_beyond_all_files_are_damage(finished: Path) -> None:
    path = finished / "hololens" / "pv" / "000001.h5"
    for offset, size in ((1 << 62, 5), ((1 << 64) - 9, 5), (0, (1 << 32) - 1)):
        with h5py.File(path, "r+") as file:
            index = np.array(file["index"][:], INDEX)
            index["offset"][3], index["size"][3] = offset, size
            file["index"][:] = index
        with Chunk(path) as chunk:
            bad: dict[int, str] = {}
            assert len([row for row, _ in chunk.sound(bad=bad)]) < len(index)
            assert 3 in bad

"""A point cloud in bounded memory: one mean point and colour for each small cube of the room.

Memory grows with the area of visible surfaces, not with time.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kitchensync.shell.array_types import Floats32

Sums = npt.NDArray[np.void]

VOXEL_M = 0.01
_BITS = 21  # three coordinates fit into a positive int64 key
_HALF = 1 << (_BITS - 1)
"Cubes along an axis, on each side of the origin: ten kilometres at one centimetre."
_PENDING_ROWS = 1_500_000  # about 80 MB of sums between two merges

_SUM = np.dtype(
    [("key", "<i8"), ("place", "<f8", (3,)), ("count", "<f4"), ("colour", "<f4", (3,)), ("coloured", "<f4")]
)


@dataclass(frozen=True)
class Cloud:
    """Points in the world."""

    points: Floats32
    "(n, 3) metres: the mean of the points in each cube."
    colours: npt.NDArray[np.uint8]
    "(n, 3) RGB, the mean over the pictures of the point; 0 without any."
    coloured: npt.NDArray[np.bool_]
    "(n,) whether there is a picture of it."
    count: npt.NDArray[np.int64]
    "(n,) number of depth pixels."


class Voxels:
    """Cubes of `voxel_m` metres that collect the points of all pictures."""

    def __init__(self, voxel_m: float = VOXEL_M) -> None:
        self._voxel_m = voxel_m
        self._all: Sums = np.empty(0, _SUM)
        self._pending: list[Sums] = []

    def add(self, points: Floats32, colours: npt.NDArray[np.uint8], coloured: npt.NDArray[np.bool_]) -> None:
        """Add points (n, 3), metres; `colours` (n, 3) are valid where `coloured` (n,)."""
        if not len(points):
            return
        cube = np.floor(points / np.float32(self._voxel_m)).astype(np.int64) + _HALF
        keys, place = np.unique(
            (cube[:, 0] << 2 * _BITS) | (cube[:, 1] << _BITS) | cube[:, 2], return_inverse=True
        )
        sums = np.zeros(len(keys), _SUM)
        sums["key"], sums["count"] = keys, np.bincount(place, minlength=len(keys))
        sums["coloured"] = np.bincount(place, coloured, len(keys))
        for axis in range(3):
            sums["place"][:, axis] = np.bincount(place, points[:, axis], len(keys))
            sums["colour"][:, axis] = np.bincount(place, colours[:, axis] * coloured, len(keys))
        self._pending.append(sums)
        if sum(map(len, self._pending)) > _PENDING_ROWS:
            self._merge()

    def _merge(self) -> None:
        together = np.concatenate([self._all, *self._pending])
        self._pending = []
        if not len(together):
            return
        together = together[np.argsort(together["key"], kind="stable")]
        starts = np.flatnonzero(np.diff(together["key"], prepend=-1))
        merged = np.empty(len(starts), _SUM)
        merged["key"] = together["key"][starts]
        for name in ("place", "count", "colour", "coloured"):
            merged[name] = np.add.reduceat(together[name], starts, axis=0)
        self._all = merged

    def save(self, path: Path) -> None:
        """Save the state (`.npy`), to continue later."""
        self._merge()
        np.save(path, self._all, allow_pickle=False)

    def load(self, path: Path) -> None:
        """Load the state from `save`."""
        self._all = np.load(path, allow_pickle=False).astype(_SUM)

    def cloud(self, least: int = 1) -> Cloud:
        """Return a point for every cube with at least so many depth pixels."""
        self._merge()
        all_ = self._all
        kept = all_[all_["count"] >= least]
        points = kept["place"] / kept["count"][:, None]
        coloured = kept["coloured"] > 0
        colours = kept["colour"] / np.maximum(kept["coloured"], 1)[:, None]
        return Cloud(
            points.astype(np.float32),
            np.rint(colours).astype(np.uint8),
            coloured,
            np.rint(kept["count"]).astype(np.int64),
        )

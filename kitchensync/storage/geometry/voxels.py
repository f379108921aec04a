"""A cloud of any number of points in bounded memory: one mean point and colour in each little cube of the room.

Memory grows with the surfaces that were seen, not with the time that they were looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kitchensync.shell.array_types import Floats32

Sums = npt.NDArray[np.void]

VOXEL_M = 0.01
_BITS = 21
_HALF = 1 << (_BITS - 1)
"Cubes along an axis, to either side of the origin: ten kilometres at one centimetre."
_PENDING_ROWS = 1_500_000

_SUM = np.dtype(
    [("key", "<i8"), ("place", "<f8", (3,)), ("count", "<f4"), ("colour", "<f4", (3,)), ("coloured", "<f4")]
)


@dataclass(frozen=True)
class Cloud:
    """Points in the world."""

    points: Floats32
    "(n, 3) metres: the mean of what was seen in each cube."
    colours: npt.NDArray[np.uint8]
    "(n, 3) RGB, the mean over the pictures that show it; 0 where none does."
    coloured: npt.NDArray[np.bool_]
    "(n,) whether a picture shows it."
    count: npt.NDArray[np.int64]
    "(n,) depth pixels that fell into it."


class Voxels:
    """Cubes of `voxel_m` metres that points are put into, picture after picture."""

    def __init__(self, voxel_m: float = VOXEL_M) -> None:
        self._voxel_m = voxel_m
        self._all: Sums = np.empty(0, _SUM)
        self._pending: list[Sums] = []

    def add(self, points: Floats32, colours: npt.NDArray[np.uint8], coloured: npt.NDArray[np.bool_]) -> None:
        """Put points (n, 3), metres, in; `colours` (n, 3) count where `coloured` (n,)."""
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
        """Keep all that is known (`.npy`), to go on from later."""
        self._merge()
        np.save(path, self._all, allow_pickle=False)

    def load(self, path: Path) -> None:
        """Begin with what `save` kept."""
        self._all = np.load(path, allow_pickle=False).astype(_SUM)

    def cloud(self, least: int = 1) -> Cloud:
        """Return a point for every cube that at least so many depth pixels fell into."""
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

"""Where a device was at any instant, between the instants at which it said so."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.spatial.transform import Rotation

from calibration.geometry.reference_frames import Transform, tracked, world_from_local

Ticks = npt.NDArray[np.int64]

TICKS_PER_S = 1e7
LONGEST_GAP_S = 0.25
"Between poses farther apart the head may have been anywhere; far depth comes every 0.2 s."


@dataclass(frozen=True)
class PoseTrack:
    """Poses of one rigid thing, in rising time."""

    ticks: Ticks
    "(n,) device ticks, 100 ns."
    world_from_local: Transform
    "(n, 4, 4) column-vector, metres."
    world: npt.NDArray[np.int32]
    "(n,) number of the world frame: poses in different ones cannot be compared."

    @staticmethod
    def of_wire(ticks: Ticks, wire: npt.NDArray[np.float32], world: npt.NDArray[np.int32]) -> PoseTrack:
        """Take poses (n, 4, 4) as the headset sent them; untracked ones are left out."""
        good = np.flatnonzero(tracked(wire))
        good = good[np.argsort(ticks[good], kind="stable")]
        good = good[np.flatnonzero(np.diff(ticks[good], prepend=ticks[good][:1] - 1) > 0)]
        return PoseTrack(ticks[good].astype(np.int64), world_from_local(wire[good]), world[good])

    def moved(self, local_from_other: Transform) -> PoseTrack:
        """Return the track of something else that is fixed to it."""
        return PoseTrack(self.ticks, self.world_from_local @ local_from_other, self.world)

    def at(self, ticks: npt.ArrayLike) -> tuple[Transform, npt.NDArray[np.int32]]:
        """Return poses (m, 4, 4) at instants (m,) and their world frames; NaN and -1 where nothing is known.

        Places are interpolated on a line and turns on the great circle (slerp, Shoemake 1985) between the two poses
        around an instant, which are at most a quarter of a second apart and in one world frame.
        """
        when = np.atleast_1d(np.asarray(ticks, np.int64))
        poses, world = np.full((len(when), 4, 4), np.nan), np.full(len(when), -1, np.int32)
        if len(self.ticks) == 0:
            return poses, world
        after = np.searchsorted(self.ticks, when, side="left").clip(0, len(self.ticks) - 1)
        exact = self.ticks[after] == when
        before = np.where(exact, after, after - 1).clip(0)
        gap = self.ticks[after] - self.ticks[before]
        inside = (self.ticks[before] <= when) & (when <= self.ticks[after])
        ok = inside & (gap <= LONGEST_GAP_S * TICKS_PER_S) & (self.world[before] == self.world[after])
        if ok.any():
            one, other = self.world_from_local[before[ok]], self.world_from_local[after[ok]]
            part = (when - self.ticks[before])[ok] / np.maximum(gap[ok], 1)
            poses[ok], world[ok] = between(one, other, part), self.world[before[ok]]
        return poses, world


def between(one: Transform, other: Transform, part: npt.NDArray[np.float64]) -> Transform:
    """Return poses (m, 4, 4) that lie a `part` (m,) of the way from some to others."""
    way = Rotation.from_matrix(np.swapaxes(one[:, :3, :3], -1, -2) @ other[:, :3, :3]).as_rotvec()
    result = one.copy()
    result[:, :3, :3] = one[:, :3, :3] @ Rotation.from_rotvec(part[:, None] * way).as_matrix()
    result[:, :3, 3] += part[:, None] * (other[:, :3, 3] - one[:, :3, 3])
    return result

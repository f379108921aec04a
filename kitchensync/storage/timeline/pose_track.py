"""The pose of an object at any time, interpolated between recorded poses. Pure functions.

Rotations are unit quaternions w x y z from the object's own frame to the world; transforms are (..., 4, 4), column
vectors, metres.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.spatial.transform import Rotation

from kitchensync.sensors.hololens.wire import is_tracked
from kitchensync.shell.array_types import Floats, Int64

Int32 = npt.NDArray[np.int32]
Transform = npt.NDArray[np.float64]

POSE_GAP_TICKS = 1_000_000
"""100 ms; in a longer gap a head may move anywhere."""


@dataclass(frozen=True, slots=True)
class Poses:
    """Interpolated rigid poses: position (n, 3) m, rotation (n, 4), `valid` (n,); NaN where not valid.

    `world` (n,) is the number of the world frame, -1 where not valid.
    """

    position_m: Floats
    rotation_wxyz: Floats
    valid: npt.NDArray[np.bool_]
    world: Int32

    @property
    def world_from_local(self) -> Transform:
        """The same as transforms (n, 4, 4), NaN where not valid."""
        return transforms_of(self.position_m, self.rotation_wxyz)


@dataclass(frozen=True, slots=True)
class PoseTrack:
    """Recorded poses of one rigid object: ticks (n,) int64, position (n, 3) m, rotation (n, 4); NaN if untracked.

    `world` (n,) is the number of the world frame; poses in different ones cannot be compared.
    """

    ticks: Int64
    position_m: Floats
    rotation_wxyz: Floats
    world: Int32
    name: str = ""

    @classmethod
    def of_wire(
        cls, ticks: npt.ArrayLike, wire_poses: npt.ArrayLike, world: Int32, name: str = ""
    ) -> PoseTrack:
        """Take poses (n, 4, 4) as the headset sends them: row vectors times matrix, all zero when untracked."""
        poses = np.array(wire_poses, np.float64).reshape(-1, 4, 4)
        poses[~np.asarray(is_tracked(poses))] = np.nan
        return cls.of_transforms(np.asarray(ticks, np.int64), np.swapaxes(poses, 1, 2), world, name)

    @classmethod
    def of_transforms(
        cls, ticks: Int64, world_from_local: Transform, world: Int32, name: str = ""
    ) -> PoseTrack:
        """Take transforms (n, 4, 4), NaN where untracked."""
        turns = rotation_wxyz(world_from_local[:, :3, :3])
        return cls(ticks, world_from_local[:, :3, 3], turns, world, name)

    def moved(self, local_from_other: Transform) -> PoseTrack:
        """Return the track of another object that is rigidly fixed to it."""
        own = transforms_of(self.position_m, self.rotation_wxyz)
        return self.of_transforms(self.ticks, own @ local_from_other, self.world, self.name)

    def at(self, ticks: npt.ArrayLike, *, longest_gap: int = POSE_GAP_TICKS) -> Poses:
        """Return poses at times (m,): positions linear, rotations slerp; none in gaps or beyond the ends.

        There is no interpolation between world frames. Of poses with equal stamps the first one is used.
        """
        when = np.atleast_1d(np.asarray(ticks, np.int64))
        # tracked poses in strictly rising time
        is_tracked_row = np.isfinite(self.position_m).all(axis=1) & np.isfinite(self.rotation_wxyz).all(
            axis=1
        )
        rows = np.flatnonzero(is_tracked_row)
        rows = rows[np.argsort(self.ticks[rows], kind="stable")]
        is_fresh = np.diff(self.ticks[rows], prepend=self.ticks[rows][:1] - 1) > 0
        rows = rows[is_fresh].astype(np.int64)
        own, world = self.ticks[rows], self.world[rows]
        position_m, turns = self.position_m[rows], self.rotation_wxyz[rows]
        count = len(when)
        if len(rows) == 0:
            nothing = np.full((count, 3), np.nan), np.full((count, 4), np.nan), np.zeros(count, dtype=bool)
            return Poses(*nothing, np.full(count, -1, dtype=np.int32))
        right = np.searchsorted(own, when, side="left").clip(max=len(own) - 1)
        exact = own[right] == when
        left = np.where(exact, right, (right - 1).clip(min=0))
        gap = own[right] - own[left]
        inside = (when >= own[left]) & (when <= own[right])
        valid = inside & (gap <= longest_gap) & (world[left] == world[right])
        share = np.where(gap > 0, (when - own[left]) / np.maximum(gap, 1), 0.0)[:, None]
        position = position_m[left] + share * (position_m[right] - position_m[left])
        rotation = slerp(turns[left], turns[right], share)
        position[~valid], rotation[~valid] = np.nan, np.nan
        return Poses(position, rotation, valid, np.where(valid, world[left], -1).astype(np.int32))


def slerp(first: Floats, second: Floats, share: Floats) -> Floats:
    """Interpolate unit quaternions (n, 4) along the shorter arc; `share` (n, 1) in [0, 1] (Shoemake 1985)."""
    dot = np.sum(first * second, axis=1, keepdims=True)
    second = np.where(dot < 0, -second, second)
    angle = np.arccos(np.clip(np.abs(dot), 0.0, 1.0))
    small = angle < 1e-6
    sine = np.where(small, 1.0, np.sin(angle))
    a = np.where(small, 1.0 - share, np.sin((1.0 - share) * angle) / sine)
    b = np.where(small, share, np.sin(share * angle) / sine)
    out: Floats = a * first + b * second
    out /= np.linalg.norm(out, axis=1, keepdims=True)
    return out


def rotation_wxyz(matrices: Floats) -> Floats:
    """Return unit quaternions (n, 4) of rotation matrices (n, 3, 3) for column vectors; NaN for invalid ones."""
    flat = np.asarray(matrices, dtype=np.float64)
    finite = np.asarray(np.isfinite(flat).all(axis=(1, 2)))
    turning = np.linalg.det(np.where(finite[:, None, None], flat, 0.0))
    good = np.flatnonzero(finite & (turning > 0.5))
    out = np.full((len(flat), 4), np.nan)
    if len(good):
        out[good] = Rotation.from_matrix(flat[good]).as_quat()[:, [3, 0, 1, 2]]
    return out


def transforms_of(position_m: Floats, rotation_wxyz: Floats) -> Transform:
    """Return transforms (n, 4, 4) of positions (n, 3) and rotations (n, 4); NaN if these are NaN."""
    known = np.isfinite(position_m).all(axis=1) & np.isfinite(rotation_wxyz).all(axis=1)
    out = np.full((len(position_m), 4, 4), np.nan)
    out[known] = np.eye(4)
    if known.any():
        out[known, :3, :3] = Rotation.from_quat(rotation_wxyz[known][:, [1, 2, 3, 0]]).as_matrix()
        out[known, :3, 3] = position_m[known]
    return out

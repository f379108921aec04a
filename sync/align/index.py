"""Which sample of every stream belongs to each frame of the master: nearest, slices, interpolated poses.

Times are int64 device ticks (100 ns) of one clock. Images and depth are never interpolated; poses are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sensors.array_types import Floats, Int64
from sync.errors import NotIncreasing

Int32 = npt.NDArray[np.int32]

TOLERANCE_PERIODS = 0.6
POSE_GAP_TICKS = 1_000_000  # 100 ms: across more, a head may be anywhere


@dataclass(frozen=True, slots=True)
class Order:
    """How to put samples in strictly increasing order: `rows` of the original, and what was found on the way."""

    rows: Int64
    unsorted: int
    duplicates: int


@dataclass(frozen=True, slots=True)
class Poses:
    """Interpolated rigid poses at master times: position (n, 3) m, rotation (n, 4) w x y z, `valid` (n,).

    `world` (n,) numbers the world frame that each is in, -1 where not valid.
    """

    position_m: Floats
    rotation_wxyz: Floats
    valid: npt.NDArray[np.bool_]
    world: Int32


def strictly_increasing(ticks: Int64) -> Order:
    """Sort stamps, keep the first of equal ones, and count both repairs."""
    rows = np.argsort(ticks, kind="stable").astype(np.int64)
    fresh = np.ones(len(rows), dtype=bool)
    fresh[1:] = np.diff(ticks[rows]) > 0
    unsorted = int((np.diff(ticks) < 0).sum())
    return Order(rows[fresh], unsorted, int(len(rows) - fresh.sum()))


def check_increasing(ticks: Int64, what: str) -> None:
    """Raise NotIncreasing at the first stamp that is not later than the one before."""
    late = np.flatnonzero(ticks[1:] <= ticks[:-1])
    if len(late):
        raise NotIncreasing(what, int(late[0]) + 1)


def tolerance_ticks(ticks: Int64) -> int:
    """Default tolerance of a stream: 0.6 of its median period."""
    return int(TOLERANCE_PERIODS * np.median(np.diff(ticks))) if len(ticks) > 1 else 0


def nearest(ticks: Int64, master_ticks: Int64, *, tolerance: int, what: str = "stream") -> Int32:
    """Index into `ticks` of the sample nearest to each master time, -1 beyond `tolerance`; ties to the earlier.

    Raises NotIncreasing unless `ticks` strictly increase.
    """
    check_increasing(ticks, what)
    if len(ticks) == 0:
        return np.full(len(master_ticks), -1, dtype=np.int32)
    after = np.searchsorted(ticks, master_ticks).clip(max=len(ticks) - 1)
    before = (after - 1).clip(min=0)
    before_wins = np.abs(ticks[before] - master_ticks) <= np.abs(ticks[after] - master_ticks)
    found = np.where(before_wins, before, after)
    return np.where(np.abs(ticks[found] - master_ticks) <= tolerance, found, -1).astype(np.int32)


def slices(ticks: Int64, master_ticks: Int64) -> tuple[Int64, Int64]:
    """Half-open sample ranges [i0, i1) between each master time and the next.

    The last master frame gets one median period. Samples belong to exactly one frame; a sample stamped before its
    predecessor counts at the predecessor's time, so that ranges stay whole. Raises NotIncreasing for the master.
    """
    ticks = np.maximum.accumulate(ticks) if len(ticks) else ticks
    check_increasing(master_ticks, "master")
    if len(master_ticks) == 0:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    period = int(np.median(np.diff(master_ticks))) if len(master_ticks) > 1 else 0
    edges = np.append(master_ticks, master_ticks[-1] + period)
    at = np.searchsorted(ticks, edges, side="left").astype(np.int64)
    return at[:-1], at[1:]


def offsets_us(ticks: Int64, found: Int32, master_ticks: Int64) -> Int32:
    """Sample time minus master time in microseconds (int32), 0 where nothing was found."""
    if len(ticks) == 0:
        return np.zeros(len(found), dtype=np.int32)
    away = ticks[np.maximum(found, 0)] - master_ticks
    return np.where(found >= 0, np.rint(away / 10.0), 0).astype(np.int32)


def interpolate_poses(
    ticks: Int64,
    position_m: Floats,
    rotation_wxyz: Floats,
    master_ticks: Int64,
    *,
    world: npt.NDArray[np.integer] | None = None,
    largest_gap: int = POSE_GAP_TICKS,
) -> Poses:
    """Positions linear, rotations slerp with the sign fixed; NaN across gaps and never beyond the ends.

    `ticks` (m,) strictly increasing, `position_m` (m, 3), `rotation_wxyz` (m, 4) unit quaternions; rows with NaN
    are taken as absent. `world` (m,) numbers the world frame of each (default: one for all): nothing is interpolated
    from one to another. Raises NotIncreasing.
    """
    check_increasing(ticks, "poses")
    world = np.zeros(len(ticks), dtype=np.int32) if world is None else world
    known = np.isfinite(position_m).all(axis=1) & np.isfinite(rotation_wxyz).all(axis=1)
    ticks, position_m, rotation_wxyz, world = (
        ticks[known],
        position_m[known],
        rotation_wxyz[known],
        world[known],
    )
    count = len(master_ticks)
    if len(ticks) == 0:
        nothing = np.full((count, 3), np.nan), np.full((count, 4), np.nan), np.zeros(count, dtype=bool)
        return Poses(*nothing, np.full(count, -1, dtype=np.int32))
    right = np.searchsorted(ticks, master_ticks, side="left").clip(max=len(ticks) - 1)
    exact = ticks[right] == master_ticks
    left = np.where(exact, right, (right - 1).clip(min=0))
    gap = ticks[right] - ticks[left]
    inside = (master_ticks >= ticks[left]) & (master_ticks <= ticks[right])
    valid = inside & (gap <= largest_gap) & (world[left] == world[right])
    share = np.where(gap > 0, (master_ticks - ticks[left]) / np.maximum(gap, 1), 0.0)[:, None]
    position = position_m[left] + share * (position_m[right] - position_m[left])
    rotation = slerp(rotation_wxyz[left], rotation_wxyz[right], share)
    position[~valid], rotation[~valid] = np.nan, np.nan
    return Poses(position, rotation, valid, np.where(valid, world[left], -1).astype(np.int32))


def slerp(first: Floats, second: Floats, share: Floats) -> Floats:
    """Spherical interpolation of unit quaternions (n, 4) the short way round; `share` (n, 1) in [0, 1]."""
    dot = np.sum(first * second, axis=1, keepdims=True)
    second = np.where(dot < 0, -second, second)
    angle = np.arccos(np.clip(np.abs(dot), 0.0, 1.0))
    small = angle < 1e-6
    sine = np.where(small, 1.0, np.sin(angle))
    a = np.where(small, 1.0 - share, np.sin((1.0 - share) * angle) / sine)
    b = np.where(small, share, np.sin(share * angle) / sine)
    out = a * first + b * second
    return out / np.linalg.norm(out, axis=1, keepdims=True)


def rotation_wxyz(matrices: Floats) -> Floats:
    """Unit quaternions (n, 4) of rotation matrices (n, 3, 3) that act on column vectors; NaN for broken ones."""
    from scipy.spatial.transform import Rotation

    flat = np.asarray(matrices, dtype=np.float64)
    finite = np.asarray(np.isfinite(flat).all(axis=(1, 2)))
    turning = np.linalg.det(np.where(finite[:, None, None], flat, 0.0))
    good = np.flatnonzero(finite & (turning > 0.5))
    out = np.full((len(flat), 4), np.nan)
    if len(good):
        out[good] = Rotation.from_matrix(flat[good]).as_quat()[:, [3, 0, 1, 2]]
    return out

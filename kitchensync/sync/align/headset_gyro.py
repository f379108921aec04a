"""A headset's rotation rates: of its gyroscope on its repaired clock, or of its poses where that is missing. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation

from kitchensync.shell.array_types import Floats, Int64
from kitchensync.storage.timeline.stamps import TICKS_PER_S, StampRepair
from kitchensync.sync.errors import BadArrays
from kitchensync.sync.fit.resample import DECIMATED_HZ, GyroTrack, decimate

GYROSCOPE = "gyroscope"
HEAD_POSE = "head_pose"
CAMERA = "camera"
BLOCK_SAMPLES = 1 << 16


@dataclass(frozen=True, slots=True)
class HeadsetGyro:
    """Headset gyroscope on its repaired clock, seconds since `epoch_ticks`, thinned to about 400 Hz."""

    epoch_ticks: int
    track: GyroTrack
    repair: StampRepair
    source: str = GYROSCOPE


def headset_gyro(
    blocks: Iterator[tuple[Int64, npt.NDArray[np.floating]]], repair: StampRepair
) -> HeadsetGyro:
    """Stamp and thin the headset's gyroscope; `blocks` yields vinyl_ns (n,) and rates (n, 3) in order."""
    epoch: int | None = None
    done = 0

    def stamped() -> Iterator[tuple[Floats, npt.NDArray[np.floating]]]:
        nonlocal epoch, done
        for vinyl_ns, rates in blocks:
            ticks = repair.ticks(vinyl_ns, first_sample=done)
            done += len(vinyl_ns)
            epoch = int(ticks[0]) if epoch is None else epoch
            yield (ticks - epoch).astype(np.float64) / TICKS_PER_S, rates

    factor = max(1, round(repair.rate_hz / DECIMATED_HZ))
    track = decimate(stamped(), factor)
    assert epoch is not None
    return HeadsetGyro(epoch, track, repair)


def camera_as_reference(track: GyroTrack) -> HeadsetGyro:
    """Take a camera's gyroscope in the headset's place: ticks are 100 ns of its media time, true as they stand."""
    count, rate_hz = len(track.t_s), 1.0 / float(np.median(np.diff(track.t_s)))
    repair = StampRepair((), count, count, 0, rate_hz, 0.0, 0.0, 0.0, 0.0)
    return HeadsetGyro(0, track, repair, source=CAMERA)


def in_blocks(
    vinyl_ns: Int64, rates: npt.NDArray[np.floating]
) -> Iterator[tuple[Int64, npt.NDArray[np.floating]]]:
    """Cut whole arrays into blocks, so that nothing of full length is built."""
    for start in range(0, len(vinyl_ns), BLOCK_SAMPLES):
        piece = slice(start, start + BLOCK_SAMPLES)
        yield vinyl_ns[piece], rates[piece]


LONGEST_STEP_S = 0.1  # three periods of 30 Hz; rotation is not interpolated across longer gaps
RATES_HZ = 100.0  # the grid on which both motions are compared (`pairing.FINE_HZ`)
MOST_RAD_PER_S = 30.0  # faster is a relocalization, not a head


def head_pose_gyro(ticks: Int64, rotation_wxyz: Floats) -> HeadsetGyro:
    """Rates (rad/s in the head's axes) at 100 Hz: the slope of a cubic spline through the summed-up turns.

    Turns are `log(q_k^-1 q_k+1)`. Straight lines between rates of 30 Hz would damp quick motion, which the camera's
    gyroscope saw in full: what is left looks like noise.

    `ticks` (n,) int64, `rotation_wxyz` (n, 4) head to world, NaN where untracked. Raises BadArrays when fewer than
    two steps are left.
    """
    known = np.isfinite(rotation_wxyz).all(axis=1)
    ticks, turns = ticks[known], rotation_wxyz[known]
    order = np.unique(ticks, return_index=True)[1] if len(ticks) else np.empty(0, dtype=np.int64)
    ticks, turns = ticks[order], turns[order]
    if len(ticks) < 3:
        raise BadArrays("head pose", f"only {len(ticks)} tracked poses")
    epoch = int(ticks[0])
    t_s = (ticks - epoch).astype(np.float64) / TICKS_PER_S
    heads = Rotation.from_quat(turns[:, [1, 2, 3, 0]])
    step = np.diff(t_s)
    turns_rad = (heads[:-1].inv() * heads[1:]).as_rotvec()
    usable = (step < LONGEST_STEP_S) & (np.linalg.norm(turns_rad, axis=1) < MOST_RAD_PER_S * step)
    if usable.sum() < 2:
        raise BadArrays("head pose", "no two tracked poses follow each other closely")
    hz = 1.0 / float(np.median(step))
    repair = StampRepair((), len(ticks), len(ticks), 0, hz, 0.0, 0.0, 0.0, 0.0)
    turned_rad = _without_coning(np.where(usable[:, None], turns_rad, 0.0))
    angle = np.zeros((len(t_s), 3))
    np.cumsum(np.where(usable[:, None], turned_rad, 0.0), axis=0, out=angle[1:])
    at_s = np.arange(t_s[0], t_s[-1], 1.0 / RATES_HZ)
    at_s = at_s[usable[np.searchsorted(t_s, at_s, side="right") - 1]]
    track = GyroTrack(at_s, CubicSpline(t_s, angle, axis=0)(at_s, 1))
    return HeadsetGyro(epoch, track, repair, HEAD_POSE)


def _without_coning(turns_rad: Floats) -> Floats:
    """Integrals of the rate over each step, out of the turns (n, 3) over it: an axis that moves bends a turn.

    `turn = a + (a_before x a + a x a_after) / 24` for rates that change evenly (Bortz 1971, equation of the rotation
    vector); at 30 Hz that is half a thousandth of a radian in a quick turn of the head, more than a pose errs.
    """
    around = np.pad(turns_rad, ((1, 1), (0, 0)), mode="edge")
    return turns_rad - np.cross(turns_rad, around[2:] - around[:-2]) / 24.0

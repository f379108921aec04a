"""Rotation rates from head poses, for recordings whose gyroscope is missing: pure.

Poses come at 30 Hz, and the device may predict or filter them, so the result is never better than `check`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.spatial.transform import Rotation

from sync.errors import BadArrays
from sync.headset_gyro import HEAD_POSE, HeadsetGyro
from sync.resample import GyroTrack
from sync.stamps import TICKS_PER_S, StampRepair

Int64 = npt.NDArray[np.int64]
Floats = npt.NDArray[np.floating]

LONGEST_STEP_S = 0.1
MOST_RAD_PER_S = 30.0  # faster is a relocalization, not a head


def head_pose_gyro(ticks: Int64, rotation_wxyz: Floats) -> HeadsetGyro:
    """Rates `w = log(q_k^-1 q_k+1) / dt` at the middle of each step, rad/s in the head's axes.

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
    rates = (heads[:-1].inv() * heads[1:]).as_rotvec() / step[:, None]
    usable = (step < LONGEST_STEP_S) & (np.linalg.norm(rates, axis=1) < MOST_RAD_PER_S)
    if usable.sum() < 2:
        raise BadArrays("head pose", "no two tracked poses follow each other closely")
    middle = 0.5 * (t_s[1:] + t_s[:-1])
    hz = 1.0 / float(np.median(step))
    repair = StampRepair((), len(ticks), len(ticks), 0, hz, 0.0, 0.0, 0.0, 0.0)
    return HeadsetGyro(epoch, GyroTrack(middle[usable], rates[usable]), repair, HEAD_POSE)

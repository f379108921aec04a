"""How wrong an alignment of gyroscopes can be: the statistical and the model part of its bound. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import t as student_t

from sync.fine import Fine
from sync.headset_gyro import HEAD_POSE, HeadsetGyro
from sync.shape_tests import bend

Floats = npt.NDArray[np.floating]
Three = tuple[float, float, float]

HEAD_POSE_FACTOR = 1.5  # windows of 30 Hz poses scatter less than they err
HEAD_POSE_WHOLE = (
    0.75  # the noise of differences cancels over longer than the half second that a whole fit looks at
)
STAT_FLOOR_S = 5e-6
TWO_SIDED_95 = 1.96
WHOLE_FIT_SHARE = 0.9  # its sigma is the larger of two, and model and statistical part add up
BEND_SHARE = 1.5  # a clock that wants one degree more wants some of the next too
STAMP_SHARE = 0.15  # twice what the 5th percentile of exponential delays is off, as a share of their spread
STAMP_SCATTER = 1.0  # and how much the envelope of few batches scatters, over the root of their number


@dataclass(frozen=True, slots=True)
class ErrorParts:
    """Parts in ms at start, middle and end of the media; `within_ms`: the largest statistical one in the overlap."""

    stat_ms: Three
    model_ms: Three
    within_ms: float


def error_parts(fine: Fine, headset: HeadsetGyro, span_s: tuple[float, float]) -> ErrorParts:
    """Both parts over `span_s`, where the map is handed out: beyond the overlap they grow with the drift.

    Of a curve in pieces the worst of each third. The headset's stamps rest on the lower envelope of late ones: how
    low that lies is known to a part of the jitter.
    """
    first, last = span_s
    ends = np.array([first, 0.5 * (first + last), last])
    breaks = np.array(fine.line.shape.breaks_s)
    breaks = breaks[(breaks > first) & (breaks < last)]
    where = np.concatenate([ends, breaks, np.nextafter(breaks, np.inf)])
    third = np.clip(((where - first) / max(last - first, 1e-9) * 3.0).astype(int), 0, 2)
    sigma = _sigma_ms(fine, headset, where)
    stat = [float(sigma[third == k].max()) for k in range(3)]
    stamps = (STAMP_SHARE + STAMP_SCATTER / max(headset.repair.batches, 1) ** 0.5) * headset.repair.jitter_ms
    model = [BEND_SHARE * float(b) * 1e3 + stamps for b in bend(fine.lags, fine.line, ends)]
    within = float(_sigma_ms(fine, headset, np.array(fine.overlap_s)).max())
    return ErrorParts((stat[0], stat[1], stat[2]), (model[0], model[1], model[2]), within)


def _sigma_ms(fine: Fine, headset: HeadsetGyro, where_s: Floats) -> Floats:
    """Statistical sigma, widened so that two of it hold 95 % of the largest errors."""
    wide = WHOLE_FIT_SHARE
    if not fine.is_whole:
        freedom = max(int(fine.lags.kept.sum()) / 2.0 - 1.0, 2.0)  # windows overlap by half
        wide = fine.coupling * float(student_t.ppf(0.975, freedom)) / TWO_SIDED_95
    if headset.source == HEAD_POSE:
        wide *= HEAD_POSE_WHOLE if fine.is_whole else HEAD_POSE_FACTOR
    return np.hypot(wide * fine.line.sigma_s(where_s), STAT_FLOOR_S) * 1e3

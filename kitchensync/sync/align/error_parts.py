"""How wrong an alignment of gyroscopes can be: the statistical and the model part of its bound. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri, stdtrit

from kitchensync.shell.array_types import Floats
from kitchensync.storage.timeline.stamps import StampRepair
from kitchensync.sync.align.fine import Fine
from kitchensync.sync.align.headset_gyro import HEAD_POSE, HeadsetGyro
from kitchensync.sync.fit.shape_tests import bend
from kitchensync.sync.fit.windows import LONG_RUN_S

Three = tuple[float, float, float]

HEAD_POSE_FACTOR = 1.5  # windows of 30 Hz poses scatter less than they err
STAT_FLOOR_S = 5e-6
TWO_SIDED_95 = 1.96
BEND_SHARE = 1.5  # a clock that wants one degree more wants some of the next too
# The line's height is known as a 5th percentile of n batches is, to sqrt(0.95 / 0.05 / n) of itself; two sigmas, and
# a line is twice as badly known at its ends as in its middle.
STAMP_SCATTER = 2.0 * 2.0 * (0.95 / 0.05) ** 0.5


@dataclass(frozen=True, slots=True)
class ErrorParts:
    """Parts in ms at start, middle and end of the media; `within_ms`: the largest statistical one in the overlap."""

    stat_ms: Three
    model_ms: Three
    within_ms: float


def error_parts(fine: Fine, headset: HeadsetGyro, span_s: tuple[float, float]) -> ErrorParts:
    """Both parts over `span_s`, where the map is handed out: beyond the overlap they grow with the drift.

    Of a curve in pieces the worst of each third.
    """
    first, last = span_s
    ends = np.array([first, 0.5 * (first + last), last])
    breaks = np.array(fine.line.shape.breaks_s)
    breaks = breaks[(breaks > first) & (breaks < last)]
    where = np.concatenate([ends, breaks, np.nextafter(breaks, np.inf)])
    third = np.clip(((where - first) / max(last - first, 1e-9) * 3.0).astype(int), 0, 2)
    sigma = _sigma_ms(fine, headset, where, span_s)
    stat = [float(sigma[third == k].max()) for k in range(3)]
    stamps_ms = _stamps_ms(headset.repair)
    model = [BEND_SHARE * float(b) * 1e3 + stamps_ms for b in bend(fine.lags, fine.line, ends)]
    within = float(_sigma_ms(fine, headset, np.array(fine.overlap_s), span_s).max())
    return ErrorParts((stat[0], stat[1], stat[2]), (model[0], model[1], model[2]), within)


def _stamps_ms(repair: StampRepair) -> float:
    """How far the headset's stamp line can lie from the truth, ms.

    Delay only adds, so no true stamp lies above the earliest ones: the line is too late by as much as they lie below
    it, and by what so few batches leave open.
    """
    return repair.earliest_ms * (1.0 + STAMP_SCATTER / max(repair.batches, 1) ** 0.5)


def _sigma_ms(fine: Fine, headset: HeadsetGyro, where_s: Floats, span_s: tuple[float, float]) -> Floats:
    """Statistical sigma, widened so that two of it hold 95 % of the largest errors over `span_s`.

    `freedom` is the number of independent samples behind the noise: windows overlap by half; for a variance by a
    Bartlett kernel of length L over T seconds it is 1.5 T / L (Priestley 1981, section 6.2).
    """
    size = fine.line.shape.size
    at_once = sigmas_of(size) if size > 2 else sigmas_at_both_ends(fine.line.ends_correlation(*span_s))
    freedom = max(int(fine.lags.kept.sum()) / 2.0 - 1.0, 2.0)
    if fine.is_whole:
        freedom = 1.5 * (fine.overlap_s[1] - fine.overlap_s[0]) / LONG_RUN_S
    wide = 0.5 * at_once * float(stdtrit(freedom, 0.975)) / TWO_SIDED_95
    if not fine.is_whole:
        wide *= fine.coupling * (HEAD_POSE_FACTOR if headset.source == HEAD_POSE else 1.0)
    return np.hypot(wide * fine.line.sigma_s(where_s), STAT_FLOOR_S) * 1e3


COVERED = 0.95
NEARLY_ONE = 0.999  # the integral divides by sqrt(1 - correlation^2)
NODES, SHARES = np.polynomial.legendre.leggauss(64)


def sigmas_at_both_ends(correlation: float) -> float:
    """Return k with `P(|u| <= k and |v| <= k) = 0.95`, u and v normal with this correlation.

    A line is farthest off at one of its ends: k is 1.96 when both ends err alike, 2.24 when they do not know of each
    other. Integral over u of the normal density times the probability of v given u.
    """
    if abs(correlation) > NEARLY_ONE:
        return float(ndtri(0.5 + 0.5 * COVERED))
    spread = np.sqrt(1.0 - correlation**2)

    def missing(k: float) -> float:
        u = k * NODES
        given = ndtr((k - correlation * u) / spread) - ndtr((-k - correlation * u) / spread)
        return float(k * (SHARES * np.exp(-0.5 * u**2) / np.sqrt(2.0 * np.pi)) @ given) - COVERED

    return float(brentq(missing, 1.9, 2.3))


def sigmas_of(count: int) -> float:
    """Return k that holds `count` independent normal errors at once (Sidak)."""
    return float(ndtri(0.5 + 0.5 * COVERED ** (1.0 / count)))

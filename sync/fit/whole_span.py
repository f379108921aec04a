"""How many sigmas hold 95 % of the largest error of a whole recording, not only that at one moment. Pure."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

COVERED = 0.95
NEARLY_ONE = 0.999
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

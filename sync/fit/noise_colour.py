"""How the noise between two tracks of rotation rates grows with the frequency. Pure.

A pose errs by an angle, whatever came before. A rate made of two such angles errs by their difference, so its noise
rises with the square of the frequency above the flat noise of the gyroscope: `N(f) ~ 1 + (2 pi f T)^2`. Least
squares take noise for flat: they look hardest where it is worst, and a Bartlett kernel lets it leak to where the
motion is.
"""

from __future__ import annotations

import numpy as np

from sensors.array_types import Floats
from sync.fit.pairing import FINE_HZ

BAND_HZ = (0.1, 8.0)  # above, a spline through poses of 30 Hz bends the spectrum
TIMES_S = np.concatenate([[0.0], np.geomspace(0.02, 2.0, 21)])  # 0.02 s: 8 Hz is where such noise would begin
LEAST_CELLS = 500


def rising_noise_s(residual: Floats) -> float:
    """The T of the likeliest `N(f) ~ 1 + (2 pi f T)^2` for what is left (3, n) at 100 Hz; 0 where noise is flat.

    Likelihood of a spectrum by its periodogram (Whittle 1953): `sum log N + P / N`, the height of N fitted along.
    """
    count = residual.shape[1]
    if count < LEAST_CELLS:
        return 0.0
    hz = np.fft.rfftfreq(count, 1.0 / FINE_HZ)
    inside = (hz >= BAND_HZ[0]) & (hz <= BAND_HZ[1])
    seen = (np.abs(np.fft.rfft(residual * np.hanning(count))) ** 2).sum(axis=0)[inside]
    shapes = 1.0 + (2.0 * np.pi * hz[inside] * TIMES_S[:, None]) ** 2
    unlikely = np.log((seen / shapes).mean(axis=1)) + np.log(shapes).mean(axis=1)
    return float(TIMES_S[int(np.argmin(unlikely))])

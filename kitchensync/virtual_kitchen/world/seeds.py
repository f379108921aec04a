"""Independent random streams from one seed, by name, and smooth noise that can be sampled at any time."""

from __future__ import annotations

import threading
import zlib

import numpy as np

from kitchensync.virtual_kitchen.world.rotations import Floats


def generator(seed: int, name: str, *indices: int) -> np.random.Generator:
    """Return a random generator, always the same for the same seed, name and indices."""
    return np.random.default_rng([seed, zlib.crc32(name.encode()), *indices])


def camera_seed(seed: int, name: str | int) -> int:
    """Return the seed of a camera; one without a name, or with number 0, has the kitchen's seed."""
    return int(generator(seed, f"camera {name}").integers(2**31)) if name else seed


_BLOCK_KNOTS = 4096


class SmoothNoise:
    """Uniform cubic B-spline over seeded normal knots: value, rate and acceleration are exact.

    `sigma` (m,) is the knots' standard deviation per column; that of the noise is about 0.63 of it.
    """

    def __init__(self, seed: int, name: str, knot_s: float, sigma: tuple[float, ...]) -> None:
        self._seed, self._name, self._knot_s = seed, name, knot_s
        self._sigma = np.asarray(sigma, np.float64)
        self._knots = np.empty((0, len(sigma)))
        self._lock = threading.Lock()

    def _knots_until(self, last: int) -> Floats:
        with self._lock:
            while len(self._knots) <= last:
                block = len(self._knots) // _BLOCK_KNOTS
                drawn = generator(self._seed, self._name, block).standard_normal(
                    (_BLOCK_KNOTS, len(self._sigma))
                )
                self._knots = np.concatenate((self._knots, drawn * self._sigma))
            return self._knots

    def value(self, t_s: Floats) -> Floats:
        """Return the values (n, m) at times `t_s` (n,); times below zero count as zero."""
        u, c0, c1, c2, c3 = self._around(t_s)
        v = 1 - u
        return (v**3 * c0 + (3 * u**3 - 6 * u**2 + 4) * c1 + (3 * v**3 - 6 * v**2 + 4) * c2 + u**3 * c3) / 6

    def rate(self, t_s: Floats) -> Floats:
        """Return the first time derivatives (n, m)."""
        u, c0, c1, c2, c3 = self._around(t_s)
        v = 1 - u
        rate = (-(v**2) * c0 + (3 * u**2 - 4 * u) * c1 + (4 * v - 3 * v**2) * c2 + u**2 * c3) / 2
        return rate / self._knot_s

    def acceleration(self, t_s: Floats) -> Floats:
        """Return the second time derivatives (n, m)."""
        u, c0, c1, c2, c3 = self._around(t_s)
        v = 1 - u
        return (v * c0 + (3 * u - 2) * c1 + (3 * v - 2) * c2 + u * c3) / self._knot_s**2

    def _around(self, t_s: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Return the position between two knots (n, 1), 0 to 1, and the four knots around it, each (n, m)."""
        place = np.maximum(t_s, 0.0) / self._knot_s
        first = place.astype(np.int64)
        knots = self._knots_until(int(first.max(initial=0)) + 3)
        return (place - first)[:, None], knots[first], knots[first + 1], knots[first + 2], knots[first + 3]

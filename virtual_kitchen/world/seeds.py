"""Independent random streams from one seed, by name."""

import zlib

import numpy as np


def generator(seed: int, name: str, *indices: int) -> np.random.Generator:
    """Return the generator of one named thing: the same for ever for the same seed, name and indices."""
    return np.random.default_rng([seed, zlib.crc32(name.encode()), *indices])

"""Colours, edges and motion of pictures as histograms: a vector without a model, to try a training with.

48 numbers for colours (16 a channel), 36 for directions of edges (9 in each quarter of the picture, by strength), 16
for how much the pixels change from picture to picture. Each group adds up to 1, or is 0 where there is nothing.
"""

from __future__ import annotations

import numpy as np

from kitchensync.shell.array_types import Floats32, UInt8

COLOURS, DIRECTIONS, CHANGES = 16, 9, 16


class Histograms:
    """The extractor that is shipped; it needs no graphics card."""

    size = 3 * COLOURS + 4 * DIRECTIONS + CHANGES
    height = 96
    per_second = 4
    version = "1"

    def vector(self, pictures: UInt8) -> Floats32:
        """Return (100,) of pictures (n, height, width, 3) RGB."""
        grey = pictures.mean(axis=3, dtype=np.float32)
        colours = [_shares(pictures[..., channel], COLOURS, 256) for channel in range(3)]
        changes = _shares(np.abs(np.diff(grey, axis=0)), CHANGES, 256)
        groups = [np.concatenate(colours) / 3, _edges(grey), changes]
        return np.concatenate(groups).astype(np.float32)


def _shares(values: np.ndarray, bins: int, top: float, weights: np.ndarray | None = None) -> np.ndarray:
    counts, _ = np.histogram(values, bins=bins, range=(0, top), weights=weights)
    total = counts.sum()
    return counts / total if total else counts.astype(np.float64)


def _edges(grey: np.ndarray) -> np.ndarray:
    down, across = np.gradient(grey, axis=(1, 2))
    strength, direction = np.hypot(down, across), np.arctan2(down, across) % np.pi
    middle, centre = grey.shape[1] // 2, grey.shape[2] // 2
    quarters = [
        (slice(None), rows, columns)
        for rows in (slice(middle), slice(middle, None))
        for columns in (slice(centre), slice(centre, None))
    ]
    found = [_shares(direction[part], DIRECTIONS, np.pi, strength[part]) for part in quarters]
    return np.concatenate(found) / 4

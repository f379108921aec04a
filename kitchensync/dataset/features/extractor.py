"""Extractors of feature vectors: the shipped extractor, or an extractor of an installed package.

A package declares its extractor as an entry point of the group `kitchensync.extractors`: a callable without
arguments that returns an `Extractor`. The shipped extractor, for first trainings, makes histograms: 48 numbers
for colours (16 per channel), 36 for directions of edges (9 in each quarter of the frame, by strength), 16 for
changes from frame to frame. Each group adds up to 1, or is 0 without data.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Protocol, cast

import numpy as np

from kitchensync.shell.array_types import Floats32, UInt8
from kitchensync.task_graphs.errors import RecipeError

COLOURS, DIRECTIONS, CHANGES = 16, 9, 16


class Histograms:
    """The shipped extractor; it needs no graphics card."""

    size = 3 * COLOURS + 4 * DIRECTIONS + CHANGES
    height = 96
    per_second = 4
    version = "1"

    def vector(self, pictures: UInt8) -> Floats32:
        """Return (100,) from frames (n, height, width, 3) RGB."""
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
    shares = [_shares(direction[part], DIRECTIONS, np.pi, strength[part]) for part in quarters]
    return np.concatenate(shares) / 4


GROUP = "kitchensync.extractors"


class Extractor(Protocol):
    """A model, or any other function of frames."""

    size: int
    "Length of a vector."
    height: int
    "Height of the frames, pixels; the width keeps the aspect ratio of the video."
    per_second: int
    "Frames a second, evenly spaced."
    version: str
    "Version of the results; it must change when the same frames give other numbers."

    def vector(self, pictures: UInt8) -> Floats32:
        """Return (size,) from frames (n, height, width, 3) RGB, n at least 1, in order of time."""
        ...


class NoSuchExtractor(RecipeError):
    """No installed package has this extractor."""


class BadExtractor(RecipeError):
    """An extractor raised an error or returned a bad vector."""


SHIPPED: dict[str, Callable[[], Extractor]] = {"histograms": Histograms}


def load_extractor(name: str) -> Extractor:
    """Create an extractor. Raises NoSuchExtractor, BadExtractor."""
    if name in SHIPPED:
        return SHIPPED[name]()
    matches = list(entry_points(group=GROUP, name=name))
    if not matches:
        names = ", ".join(sorted({*SHIPPED, *entry_points(group=GROUP).names}))
        raise NoSuchExtractor(
            f"no extractor {name!r} is installed; there are: {names} (packages declare theirs as {GROUP})"
        )
    try:
        extractor = cast(Callable[[], Extractor], matches[0].load())()
        numbers = (extractor.size, extractor.height, extractor.per_second)
        if not all(type(number) is int and number > 0 for number in numbers):
            raise ValueError("size, height and per_second must be whole numbers above 0")
        str(extractor.version)
    except Exception as error:
        raise BadExtractor(f"extractor {name!r}: {type(error).__name__}: {error}") from error
    return extractor


def checked_vector(name: str, extractor: Extractor, pictures: UInt8) -> Floats32:
    """Return the vector of frames. Raises BadExtractor if it fails or has a wrong shape."""
    try:
        vector = np.asarray(extractor.vector(pictures), dtype=np.float32)
    except Exception as error:
        raise BadExtractor(f"extractor {name!r}: {type(error).__name__}: {error}") from error
    if vector.shape != (extractor.size,) or not np.isfinite(vector).all():
        raise BadExtractor(
            f"extractor {name!r}: returned {vector.shape}, not {extractor.size} finite numbers"
        )
    return vector

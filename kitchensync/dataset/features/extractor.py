"""What turns the pictures of a second or two into a vector: a shipped extractor, or one of an installed package.

A package announces its extractor as an entry point of the group `kitchensync.extractors`: a callable without
arguments that returns an `Extractor`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Protocol, cast

import numpy as np

from kitchensync.dataset.features.histograms import Histograms
from kitchensync.shell.array_types import Floats32, UInt8
from kitchensync.task_graphs.errors import RecipeError

GROUP = "kitchensync.extractors"


class Extractor(Protocol):
    """A model, or anything else that looks at pictures."""

    size: int
    "Numbers in a vector."
    height: int
    "Lines of the pictures that it wants; they are as wide as the film's shape asks for."
    per_second: int
    "Pictures a second that it wants, evenly spaced."
    version: str
    "Another one whenever the same pictures give other numbers."

    def vector(self, pictures: UInt8) -> Floats32:
        """Return (size,) of pictures (n, height, width, 3) RGB, n at least 1, in order of time."""
        ...


class NoSuchExtractor(RecipeError):
    """No installed package announces this extractor."""


class BadExtractor(RecipeError):
    """An extractor that does not do what it must."""


SHIPPED: dict[str, Callable[[], Extractor]] = {"histograms": Histograms}


def extractor_names() -> list[str]:
    """Name the extractors that there are."""
    return sorted({*SHIPPED, *entry_points(group=GROUP).names})


def load_extractor(name: str) -> Extractor:
    """Make an extractor. Raises NoSuchExtractor, BadExtractor."""
    if name in SHIPPED:
        return SHIPPED[name]()
    found = list(entry_points(group=GROUP, name=name))
    if not found:
        known = ", ".join(extractor_names())
        raise NoSuchExtractor(
            f"no extractor {name!r} is installed; there is: {known} (packages announce theirs as {GROUP})"
        )
    try:
        extractor = cast(Callable[[], Extractor], found[0].load())()
        wanted = (extractor.size, extractor.height, extractor.per_second)
        if not all(type(number) is int and number > 0 for number in wanted):
            raise ValueError("size, height and per_second must be whole numbers above 0")
        str(extractor.version)
    except Exception as error:
        raise BadExtractor(f"extractor {name!r}: {type(error).__name__}: {error}") from error
    return extractor


def checked_vector(name: str, extractor: Extractor, pictures: UInt8) -> Floats32:
    """Return the vector of some pictures. Raises BadExtractor where it is not what was announced."""
    try:
        vector = np.asarray(extractor.vector(pictures), dtype=np.float32)
    except Exception as error:
        raise BadExtractor(f"extractor {name!r}: {type(error).__name__}: {error}") from error
    if vector.shape != (extractor.size,) or not np.isfinite(vector).all():
        raise BadExtractor(
            f"extractor {name!r}: gave {vector.shape}, not {extractor.size} numbers that are finite"
        )
    return vector

"""A film looked through for a board: a few pictures a second, and after each the next one, which tells its motion."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from calibration.estimate.board import BoardSeen, Detector
from sensors.array_types import UInt8

Frame = TypeVar("Frame")

EVERY_S = 0.2
FEWEST_COMMON = 4


@dataclass(frozen=True)
class Look(Generic[Frame]):
    """One picture that was looked at."""

    frame: Frame
    at_s: float
    grey: UInt8
    seen: BoardSeen | None
    "The board; None without one."
    way_px: float
    "Median way of its corners to the next picture; NaN when one of both shows no board."


def looks(
    frames: Iterable[tuple[Frame, float, UInt8]], detector: Detector, name: Callable[[float], str]
) -> Iterator[Look[Frame]]:
    """Look at pictures (frame, seconds, luma) five times a second; `name` calls them by their seconds.

    A board in the very last picture is left out, since nothing tells how it moved.
    """
    due_s: float | None = None
    pending: Look[Frame] | None = None
    for frame, at_s, grey in frames:
        if pending is not None and pending.seen is not None:
            way = way_px(pending.seen, detector.find(grey, ""))
            yield Look(pending.frame, pending.at_s, pending.grey, pending.seen, way)
        pending = None
        if due_s is None or at_s >= due_s:
            due_s = at_s + EVERY_S if due_s is None else max(due_s + EVERY_S, at_s)
            pending = Look(frame, at_s, grey, detector.find(grey, name(at_s)), float("nan"))
            if pending.seen is None:
                yield pending


def way_px(before: BoardSeen, after: BoardSeen | None) -> float:
    """Return the median way of the corners seen in both pictures; NaN when there are fewer than four."""
    if after is None:
        return float("nan")
    _, mine, other = np.intersect1d(before.ids, after.ids, return_indices=True)
    if len(mine) < FEWEST_COMMON:
        return float("nan")
    return float(np.median(np.linalg.norm(before.pixels[mine] - after.pixels[other], axis=1)))

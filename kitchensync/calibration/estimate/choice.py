"""Which pictures of a film to calibrate with: sharp ones, held still, and as different from each other as can be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from kitchensync.calibration.estimate.board import Board, BoardSeen, Detector
from kitchensync.shell.array_types import Floats, UInt8

FASTEST_PX = 1.5
"Corners that move farther than this from one frame to the next are smeared by the rolling shutter; at 1920 columns."
WIDEST_EDGE_PX = 2.2
"A sharp picture's edges are about one pixel wide at any size; beyond this it is blurred."
FEWEST_CORNERS = 12
MOST_VIEWS = 40
ALIKE = 0.02
"""Views nearer to each other than this (a hundredth of the picture, or as much in size or slant) are one place:
taken twice, a place would count as two witnesses that agree, and the doubt would come out too small."""


@dataclass(frozen=True)
class CandidateFrame:
    """The board in one frame, and how fast it moved there."""

    seen: BoardSeen
    speed_px: float
    "Median way of a corner to the next frame, pixels; NaN when the next frame shows no board."


def choose(
    candidates: Sequence[CandidateFrame], board: Board, most: int = MOST_VIEWS
) -> tuple[list[BoardSeen], dict[str, str]]:
    """Return at most `most` views, and why each of the others was left out.

    Among the good ones, the view farthest from all chosen so far is taken next (farthest-point sampling), in a space
    of place, size and slant of the board in the picture.
    """
    good: list[BoardSeen] = []
    left_out: dict[str, str] = {}
    for candidate in candidates:
        why = _why_not(candidate)
        if why:
            left_out[candidate.seen.name] = why
        else:
            good.append(candidate.seen)
    if not good:
        return good, left_out
    features = np.stack([_feature(view, board) for view in good])
    chosen = [int(np.argmin(np.linalg.norm(features[:, :2], axis=1)))]
    distance = np.linalg.norm(features - features[chosen[0]], axis=1)
    while len(chosen) < most and distance.max() > ALIKE:
        chosen.append(int(np.argmax(distance)))
        distance = np.minimum(distance, np.linalg.norm(features - features[chosen[-1]], axis=1))
    left_out |= {good[i].name: "like others that were chosen" for i in set(range(len(good))) - set(chosen)}
    return [good[i] for i in sorted(chosen)], left_out


def _why_not(candidate: CandidateFrame) -> str:
    seen = candidate.seen
    if len(seen.ids) < FEWEST_CORNERS:
        return f"only {len(seen.ids)} corners"
    if not seen.edge_px <= WIDEST_EDGE_PX:
        return "blurred"
    if not candidate.speed_px <= FASTEST_PX * seen.size[0] / 1920:
        return "moving"
    return ""


def _feature(view: BoardSeen, board: Board) -> Floats:
    """Return place (-1 to 1), size (log) and slant (the affine map's shear and stretch) of the board."""
    flat = board.corners_m[view.ids, :2]
    flat = flat - flat.mean(0)
    centre = view.pixels.mean(0)
    affine = np.linalg.lstsq(flat, view.pixels - centre, rcond=None)[0].T
    one, two = np.linalg.svd(affine)[1]
    turn = np.arctan2(affine[1, 0], affine[0, 0])
    stretch = (1 - two / one) * 2
    lean = np.arctan2(affine[0, 1] + affine[1, 0], affine[0, 0] - affine[1, 1])
    size = np.log2(one * board.square_m / view.size[0] * 20)
    place = 2 * centre / view.size - 1
    return np.array([*place, size, stretch * np.cos(lean), stretch * np.sin(lean), turn / 2])


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

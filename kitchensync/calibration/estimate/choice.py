"""Select frames for a calibration: sharp, without motion, and as different from each other as possible."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np

from kitchensync.calibration.estimate.board import Board, BoardDetection, Detector
from kitchensync.shell.array_types import Floats, UInt8

MAX_MOTION_PX = 1.5
"Motion of corners between two frames, at 1920 columns, above which the rolling shutter distorts them too much."
MAX_EDGE_PX = 2.2
"Width of edges above which a frame is blurred; in a sharp frame of any size it is about one pixel."
MIN_CORNERS = 12  # `intrinsics` leaves out views with fewer
MAX_VIEWS = 40
MIN_DISTANCE = 0.02
"""Smallest difference between selected views (a hundredth of the frame, or as much in size or slant).

Nearly equal views are not independent, and would make the estimated uncertainty too small."""


@dataclass(frozen=True)
class CandidateFrame:
    """The board in one frame and its motion."""

    view: BoardDetection
    motion_px: float
    "Median motion of the corners to the next frame, pixels; NaN if the next frame shows no board."


def choose(
    candidates: Sequence[CandidateFrame], board: Board, most: int = MAX_VIEWS
) -> tuple[list[BoardDetection], dict[str, str]]:
    """Return at most `most` views, and for each of the others the reason why it was left out.

    The views are selected by farthest-point sampling in a space of position, size and slant of the board.
    """
    good: list[BoardDetection] = []
    left_out: dict[str, str] = {}
    for candidate in candidates:
        why = _why_not(candidate)
        if why:
            left_out[candidate.view.name] = why
        else:
            good.append(candidate.view)
    if not good:
        return good, left_out
    features = np.stack([_feature(view, board) for view in good])
    chosen = [int(np.argmin(np.linalg.norm(features[:, :2], axis=1)))]
    distance = np.linalg.norm(features - features[chosen[0]], axis=1)
    while len(chosen) < most and distance.max() > MIN_DISTANCE:
        chosen.append(int(np.argmax(distance)))
        distance = np.minimum(distance, np.linalg.norm(features - features[chosen[-1]], axis=1))
    left_out |= {good[i].name: "like others that were chosen" for i in set(range(len(good))) - set(chosen)}
    return [good[i] for i in sorted(chosen)], left_out


def _why_not(candidate: CandidateFrame) -> str:
    view = candidate.view
    if len(view.ids) < MIN_CORNERS:
        return f"only {len(view.ids)} corners"
    # Written so that NaN, an unknown width or motion, is not accepted.
    if not view.edge_px <= MAX_EDGE_PX:
        return "blurred"
    if not candidate.motion_px <= MAX_MOTION_PX * view.size[0] / 1920:
        return "moving"
    return ""


def _feature(view: BoardDetection, board: Board) -> Floats:
    """Return position (-1 to 1), size (log) and slant (shear and stretch of the affine map) of the board."""
    flat = board.corners_m[view.ids, :2]
    flat = flat - flat.mean(0)
    centre = view.pixels.mean(0)
    affine = np.linalg.lstsq(flat, view.pixels - centre, rcond=None)[0].T
    larger, smaller = np.linalg.svd(affine)[1]
    turn = np.arctan2(affine[1, 0], affine[0, 0])
    stretch = (1 - smaller / larger) * 2
    lean = np.arctan2(affine[0, 1] + affine[1, 0], affine[0, 0] - affine[1, 1])
    size = np.log2(larger * board.square_m / view.size[0] * 20)
    place = 2 * centre / view.size - 1
    return np.array([*place, size, stretch * np.cos(lean), stretch * np.sin(lean), turn / 2])


Frame = TypeVar("Frame")

SAMPLE_PERIOD_S = 0.2
MIN_COMMON_CORNERS = 4


@dataclass(frozen=True)
class SampledFrame(Generic[Frame]):
    """One sampled frame with the detected board."""

    frame: Frame
    at_s: float
    grey: UInt8
    view: BoardDetection | None
    "The board; None if none was detected."
    motion_px: float
    "Median motion of its corners to the next frame; NaN if one of both frames shows no board."


def sample_frames(
    frames: Iterable[tuple[Frame, float, UInt8]], detector: Detector, name: Callable[[float], str]
) -> Iterator[SampledFrame[Frame]]:
    """Sample (frame, seconds, luma) five times a second and detect the board; `name` names a frame by its time.

    A board in the last frame is left out, because its motion is not known.
    """
    due_s: float | None = None
    pending: SampledFrame[Frame] | None = None
    for frame, at_s, grey in frames:
        if pending is not None and pending.view is not None:
            yield replace(pending, motion_px=motion_px(pending.view, detector.find(grey, "")))
        pending = None
        if due_s is None or at_s >= due_s:
            due_s = at_s + SAMPLE_PERIOD_S if due_s is None else max(due_s + SAMPLE_PERIOD_S, at_s)
            pending = SampledFrame(frame, at_s, grey, detector.find(grey, name(at_s)), float("nan"))
            if pending.view is None:
                yield pending


def motion_px(before: BoardDetection, after: BoardDetection | None) -> float:
    """Return the median motion of the corners detected in both frames; NaN if there are fewer than four."""
    if after is None:
        return float("nan")
    _, in_before, in_after = np.intersect1d(before.ids, after.ids, return_indices=True)
    if len(in_before) < MIN_COMMON_CORNERS:
        return float("nan")
    return float(np.median(np.linalg.norm(before.pixels[in_before] - after.pixels[in_after], axis=1)))

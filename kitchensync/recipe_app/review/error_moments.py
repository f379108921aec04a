"""Moments of errors on the video: what each person marked, where people agree, and what is still to be ruled on.

Frames count from 0. An unmarked moment keeps the time that the cook entered.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations
from statistics import median, median_low
from typing import Annotated, Any

from pydantic import Field

from kitchensync.operations.errors import BadOperation
from kitchensync.operations.operation_kinds import Strict
from kitchensync.operations.session_state import Op
from kitchensync.recipe_app.review.judged_answers import Answers, last_answers
from kitchensync.recipe_app.review.marks import Frame
from kitchensync.recipe_app.review.rulings import AGREED_S
from kitchensync.storage.recording_files.annotation_forms import MOMENTS, Moment

REQUIRED = ("at", "end")
"""Moments of each error that happened; the others are optional."""
Moments = dict[str, dict[str, int | None]]
"""item -> moment -> frame; None where it did not happen or is not visible."""


class GivenMoment(Strict):
    """One moment of an error."""

    item: Annotated[str, Field(max_length=64)]
    moment: Moment
    frame: Frame | None


def moments_of(ops: Iterable[Op], kind: str, actor: str | None = None) -> Moments:
    """Return the last moments of one person, or of all rulers."""
    return last_answers(ops, kind, actor, "moment", "frame")


def check_moment(moment: GivenMoment, items: Iterable[str], marked: Moments, frames: int) -> None:
    """Raise BadOperation for a moment outside the video or before the start of its error."""
    if moment.item not in items or (moment.frame or 0) >= frames:
        raise BadOperation("this was not asked; load the page again")
    moments = marked.get(moment.item, {}) | {moment.moment: moment.frame}
    marked_frames = [frame for frame in moments.values() if frame is not None]
    if (moments.get("at") or 0) > min(marked_frames, default=0):
        raise BadOperation("no moment of an error is before its begin")


def settled_moments(
    people: Sequence[Moments], ruled: Moments, final: Answers, items: Iterable[str], fps: Fraction
) -> tuple[Moments, list[tuple[str, str]]]:
    """Return the final moments, and those that still need a ruling (item, moment).

    Frames within `AGREED_S` of each other agree, and their lower median is taken. Where others marked a moment, a
    missing mark counts as None. An error that did not happen has no moments.
    """
    settled: Moments = {}
    disputed = []
    for item in items:
        if final.get(item, {}).get("verdict") == "did_not_happen":
            continue
        for moment in MOMENTS:
            marked = [moments.get(item, {}) for moments in people]
            frames = [moments.get(moment) for moments in marked]
            if moment in ruled.get(item, {}):
                settled.setdefault(item, {})[moment] = ruled[item][moment]
            elif any(not _agree(a, b, fps) for a, b in combinations(frames, 2)):
                disputed.append((item, moment))
            elif any(moment in moments for moments in marked):
                known = [frame for frame in frames if frame is not None]
                settled.setdefault(item, {})[moment] = median_low(known) if known else None
    return settled, disputed


def agreement_of_moments(people: Sequence[Moments], items: Iterable[str], fps: Fraction) -> dict[str, Any]:
    """Return for each moment the share of agreeing pairs, and the median difference of pairs with two frames.

    A moment of an error counts if one of the pair marked it.
    """
    marked = [
        (first.get(item, {}), second.get(item, {}))
        for item in items
        for first, second in combinations(people, 2)
    ]
    agreement = {}
    for moment in MOMENTS:
        pairs = [
            (first.get(moment), second.get(moment))
            for first, second in marked
            if moment in first or moment in second
        ]
        differences = [abs(a - b) for a, b in pairs if a is not None and b is not None]
        agreement[moment] = {
            "share": sum(_agree(a, b, fps) for a, b in pairs) / len(pairs) if pairs else None,
            "apart_s": float(median(differences) / fps) if differences else None,
        }
    return agreement


def _agree(first: int | None, second: int | None, fps: Fraction) -> bool:
    if first is None or second is None:
        return first is second
    return abs(first - second) <= AGREED_S * fps

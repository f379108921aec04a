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
from kitchensync.recipe_app.review.judged_answers import Answers, last_given
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
    """Return the last moments of one person, or of everybody who ruled."""
    return last_given(ops, kind, actor, "moment", "frame")


def check_moment(given: GivenMoment, items: Iterable[str], marked: Moments, frames: int) -> None:
    """Raise BadOperation for a moment that is not in the video, or before the begin of its error."""
    if given.item not in items or (given.frame or 0) >= frames:
        raise BadOperation("this was not asked; load the page again")
    moments = marked.get(given.item, {}) | {given.moment: given.frame}
    known = [frame for frame in moments.values() if frame is not None]
    if (moments.get("at") or 0) > min(known, default=0):
        raise BadOperation("no moment of an error is before its begin")


def settled_moments(
    people: Sequence[Moments], ruled: Moments, final: Answers, items: Iterable[str], fps: Fraction
) -> tuple[Moments, list[tuple[str, str]]]:
    """Return the moments that hold, and what is still to be ruled on (item, moment).

    Frames within `AGREED_S` of each other agree, and the lower median holds. No mark counts as none beside a mark.
    An error that did not happen has no moments.
    """
    found: Moments = {}
    disputed = []
    for item in items:
        if final.get(item, {}).get("verdict") == "did_not_happen":
            continue
        for moment in MOMENTS:
            marked = [one.get(item, {}) for one in people]
            frames = [one.get(moment) for one in marked]
            if moment in ruled.get(item, {}):
                found.setdefault(item, {})[moment] = ruled[item][moment]
            elif any(not _agree(a, b, fps) for a, b in combinations(frames, 2)):
                disputed.append((item, moment))
            elif any(moment in one for one in marked):
                known = [frame for frame in frames if frame is not None]
                found.setdefault(item, {})[moment] = median_low(known) if known else None
    return found, disputed


def agreement_of_moments(people: Sequence[Moments], items: Iterable[str], fps: Fraction) -> dict[str, Any]:
    """Return for each moment the share that agree, and the median difference where both of a pair gave a frame.

    A moment of an error counts where one of the pair marked it.
    """
    marked = [
        (one.get(item, {}), other.get(item, {})) for item in items for one, other in combinations(people, 2)
    ]
    found = {}
    for moment in MOMENTS:
        pairs = [
            (one.get(moment), other.get(moment)) for one, other in marked if moment in one or moment in other
        ]
        apart = [abs(a - b) for a, b in pairs if a is not None and b is not None]
        found[moment] = {
            "share": sum(_agree(a, b, fps) for a, b in pairs) / len(pairs) if pairs else None,
            "apart_s": float(median(apart) / fps) if apart else None,
        }
    return found


def _agree(one: int | None, other: int | None, fps: Fraction) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) <= AGREED_S * fps

"""What several people marked in one film, brought together: what they agree on holds, a researcher rules on the rest.

The pull of touches is what they change: the same people mark nine boundaries of ten that were filled in, and one that
was left open.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from fractions import Fraction
from itertools import combinations
from statistics import median_low
from typing import Any

from kitchensync.dataset.annotation.forms.agreement_of_people import agreement
from kitchensync.recipe_app.review.marks import ENDS, FinishedMark, StepMark, Touch, finished

RULED = "rule_step"
"""Kind of the log: a change by who rules; like an edit of a step."""
AGREED_S = Fraction(1, 5)
"""Boundaries that differ by no more are the same one."""


def pairs_of_people(
    marked: Mapping[str, list[StepMark]], labels: Mapping[int, str], fps: Fraction, frames: int
) -> list[dict[str, Any]]:
    """Return how well every two people agree, in seconds; `first` and `second` name them."""
    spans = {person: _spans_s(marks, labels, fps) for person, marks in marked.items()}
    return [
        {"first": one, "second": other, **agreement(spans[one], spans[other], float(frames / fps))}
        for one, other in combinations(spans, 2)
    ]


def merged(recording: str, marked: Mapping[str, list[StepMark]], fps: Fraction) -> list[StepMark]:
    """Return one mark for each span that anybody marked, `choices` holding the ends they gave, in pictures.

    An end is checked where everybody marked it, within `AGREED_S`; otherwise the middle one stands, unchecked.
    A touch that arrived when people had submitted is a mark that nobody looked at: nobody chose its ends.
    """
    groups: list[list[FinishedMark]] = []
    for marks in marked.values():
        own: list[list[FinishedMark]] = []
        for mark in finished(marks):
            found = max(
                (one for one in groups if one not in own), key=lambda one: _shared(one, mark), default=None
            )
            if found is None or _shared(found, mark) <= 0:
                found = []
                groups.append(found)
            found.append(mark)
            own.append(found)
    most = AGREED_S * fps
    brought = [_one(recording, group, len(marked), most) for group in groups]
    looked_at = {mark["mark"] for group in groups for mark in group}
    arrived = {
        mark["mark"]: mark
        for marks in marked.values()
        for mark in marks
        if not (mark["removed"] or mark["missing"] or mark["checked"])
    }
    unseen = [one.copy() for name, one in arrived.items() if name not in looked_at]
    for one in unseen:
        one["choices"] = {end: [] for end in ENDS}
    return brought + unseen


def pull_s(
    marked: Mapping[str, list[StepMark]], touches: Mapping[str, Touch], given: list[StepMark], fps: Fraction
) -> dict[str, dict[str, float | None]]:
    """Return how far boundaries lie from their touch, in seconds: of those filled in, and of those left open.

    `touches` are marks as the touches say, by id; `given` the same as people got them.
    """
    left_open = {(mark["mark"], end) for mark in given for end in ENDS if mark[end] is None}
    away: dict[bool, list[int]] = {True: [], False: []}
    for marks in marked.values():
        for mark in finished(marks):
            for end in ENDS if mark["mark"] in touches else ():
                distance = abs(mark[end] - touches[mark["mark"]][end])
                away[(mark["mark"], end) in left_open].append(distance)
    return {
        name: {"boundaries": len(found), "median_s": float(median_low(found) / fps) if found else None}
        for name, found in (("filled_in", away[False]), ("left_open", away[True]))
    }


def _spans_s(
    marks: list[StepMark], labels: Mapping[int, str], fps: Fraction
) -> dict[str, list[tuple[float, float]]]:
    found: dict[str, list[tuple[float, float]]] = {}
    for mark in sorted(finished(marks), key=lambda one: one["start"]):
        span = (float(mark["start"] / fps), float((mark["end"] + 1) / fps))
        found.setdefault(labels[mark["node"]], []).append(span)
    return found


def _shared(group: list[FinishedMark], mark: FinishedMark) -> int:
    """Return how many pictures a mark has in common with the first of a group; 0 for another step."""
    first = group[0]
    if first["node"] != mark["node"]:
        return 0
    return int(min(first["end"], mark["end"]) - max(first["start"], mark["start"]) + 1)


def _one(recording: str, group: list[FinishedMark], people: int, most: Fraction) -> StepMark:
    name = hashlib.sha256(f"{recording} ruling {' '.join(mark['mark'] for mark in group)}".encode())
    choices = {end: [mark[end] for mark in group] for end in ENDS}
    agreed: list[str] = [
        end for end in ENDS if len(group) == people and max(choices[end]) - min(choices[end]) <= most
    ]
    return {
        "mark": name.hexdigest()[:16],
        "node": group[0]["node"],
        "start": median_low(choices["start"]),
        "end": median_low(choices["end"]),
        "checked": agreed,
        "removed": False,
        "missing": False,
        "choices": choices,
    }

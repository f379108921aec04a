"""Marks of several people on one video, merged: where they agree the mark is final, a researcher rules on the rest.

The pull of touches is their bias on people: nine boundaries in ten are filled in from touches, one is left open, and
the distances of both kinds to their touches are compared.
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
"""Kind of the log: a change by the ruler, in the form of an edit of a step."""
AGREED_S = Fraction(1, 5)
"""Largest difference of two boundaries that agree, seconds."""


def pairs_of_people(
    marked: Mapping[str, list[StepMark]], labels: Mapping[int, str], fps: Fraction, frames: int
) -> list[dict[str, Any]]:
    """Return the agreement of every pair of people, in seconds; `first` and `second` name them."""
    spans = {}
    for person, marks in marked.items():
        of_person: dict[str, list[tuple[float, float]]] = {}
        for mark in sorted(finished(marks), key=lambda mark: mark["start"]):
            span_s = (float(mark["start"] / fps), float((mark["end"] + 1) / fps))
            of_person.setdefault(labels[mark["node"]], []).append(span_s)
        spans[person] = of_person
    return [
        {"first": first, "second": second, **agreement(spans[first], spans[second], float(frames / fps))}
        for first, second in combinations(spans, 2)
    ]


def merged(recording: str, marked: Mapping[str, list[StepMark]], fps: Fraction) -> list[StepMark]:
    """Return one mark for each span that anybody marked, with the marked ends as `choices`, in frames.

    An end is checked if everybody marked it within `AGREED_S`; otherwise it is the lower median, unchecked.
    A touch that arrived after people had submitted becomes an unchecked mark without choices.
    """
    groups: list[list[FinishedMark]] = []
    for marks in marked.values():
        own: list[list[FinishedMark]] = []
        for mark in finished(marks):
            free = (group for group in groups if group not in own)
            best = max(free, key=lambda group: _overlap(group, mark), default=None)
            if best is None or _overlap(best, mark) <= 0:
                best = []
                groups.append(best)
            best.append(mark)
            own.append(best)
    most = AGREED_S * fps
    merged_marks = [_mark_of_group(recording, group, len(marked), most) for group in groups]
    looked_at = {mark["mark"] for group in groups for mark in group}
    arrived = {
        mark["mark"]: mark
        for marks in marked.values()
        for mark in marks
        if not (mark["removed"] or mark["missing"] or mark["checked"])
    }
    late = [mark.copy() for name, mark in arrived.items() if name not in looked_at]
    for mark_of_touch in late:
        mark_of_touch["choices"] = {end: [] for end in ENDS}
    return merged_marks + late


def pull_s(
    marked: Mapping[str, list[StepMark]], touches: Mapping[str, Touch], initial: list[StepMark], fps: Fraction
) -> dict[str, dict[str, float | None]]:
    """Return the median distance of boundaries from their touch, in seconds, of filled in and of open ones.

    `touches` are the touches by mark id; `initial` are the initial marks that people got.
    """
    left_open = {(mark["mark"], end) for mark in initial for end in ENDS if mark[end] is None}
    away: dict[bool, list[int]] = {True: [], False: []}
    for marks in marked.values():
        for mark in finished(marks):
            for end in ENDS if mark["mark"] in touches else ():
                distance = abs(mark[end] - touches[mark["mark"]][end])
                away[(mark["mark"], end) in left_open].append(distance)
    return {
        name: {
            "boundaries": len(distances),
            "median_s": float(median_low(distances) / fps) if distances else None,
        }
        for name, distances in (("filled_in", away[False]), ("left_open", away[True]))
    }


def _overlap(group: list[FinishedMark], mark: FinishedMark) -> int:
    """Return the number of frames that a mark shares with the first of a group; 0 for another step."""
    first = group[0]
    if first["node"] != mark["node"]:
        return 0
    return int(min(first["end"], mark["end"]) - max(first["start"], mark["start"]) + 1)


def _mark_of_group(recording: str, group: list[FinishedMark], people: int, most: Fraction) -> StepMark:
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

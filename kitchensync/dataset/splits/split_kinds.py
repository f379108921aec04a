"""Kinds of splits, their report, and definitions that all rules share."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import NotRequired, Required, TypedDict

from kitchensync.task_graphs.errors import RecipeError
from kitchensync.task_graphs.formats.annotations import AnnotatedRecording

PARTS = ("train", "val", "test")
KINDS = ("environment", "person", "recipes", "recordings", "steps", "type")

Split = dict[str, list[str]]
"""Part -> recording ids."""
StepSplit = dict[str, dict[str, list[int]]]
"""Part -> recording id -> places of entries in its list."""
Value = int | str


class AppliedRule(TypedDict, total=False):
    """A rule of a split."""

    name: Required[str]
    "published, ratio, supplement or file."
    ratio: list[float]
    seed: int
    values: dict[str, list[str]]
    "By part: values of what the kind separates."


class PartCounts(TypedDict):
    """Contents of a part."""

    recordings: int
    hours: float
    with_errors: int
    "Recordings with errors."
    recipes: int
    persons: int
    environments: int
    entries: NotRequired[int]
    "Of kind steps."
    displays: NotRequired[dict[str, int]]
    "Of own recordings: those by display."


class SplitReport(TypedDict):
    """A split and what was found about it."""

    kind: str
    rule: AppliedRule
    parts: dict[str, PartCounts]
    disjoint: bool
    complete: bool
    shared: dict[str, list[Value]]
    "Two parts, as `train,val`: what both have of what the kind separates."
    left_out: list[str]
    test_in_step_display: list[str]
    "Test recordings: text recognition could read the active step."
    notes: list[str]


class NoSuchSplit(RecipeError):
    """These recordings cannot be split this way."""


def empty() -> Split:
    """Return three parts without recordings."""
    return {part: [] for part in PARTS}


SEPARATED: dict[str, Callable[[AnnotatedRecording], Value]] = {
    "environment": attrgetter("environment"),
    "person": attrgetter("person_id"),
    "recipes": attrgetter("activity_name"),
    "recordings": attrgetter("recording_id"),
    "type": attrgetter("recording_id"),
}
"""Kind -> what its parts must not share."""


def names_of(kind: str, recording: AnnotatedRecording) -> set[str]:
    """Return the values by which the file of a rule may name this recording."""
    names = {str(SEPARATED[kind](recording))}
    return names | {str(recording.activity_id)} if kind == "recipes" else names


def script_number(recording_id: str) -> int:
    """Return N of an id `A_N`. Raises NoSuchSplit."""
    activity, _, number = recording_id.partition("_")
    if not (activity.isdecimal() and number.isdecimal()):
        raise NoSuchSplit(
            f"{recording_id}: is not a published id <activity>_<number>; give --ratio and --seed for other data"
        )
    return int(number)


def strata(recordings: list[AnnotatedRecording]) -> list[list[AnnotatedRecording]]:
    """Group recordings by recipe and by whether they have errors."""
    groups: dict[tuple[int, bool], list[AnnotatedRecording]] = {}
    for recording in recordings:
        groups.setdefault((recording.activity_id, recording.is_error), []).append(recording)
    return [groups[key] for key in sorted(groups)]

"""Kinds of splits, and definitions that all rules share."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

from kitchensync.task_graphs.errors import RecipeError
from kitchensync.task_graphs.formats.annotations import AnnotatedRecording

PARTS = ("train", "val", "test")
KINDS = ("environment", "person", "recipes", "recordings", "steps", "type")

Split = dict[str, list[str]]
"""Part -> recording ids."""
StepSplit = dict[str, dict[str, list[int]]]
"""Part -> recording id -> places of entries in its list."""
Value = int | str


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

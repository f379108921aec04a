"""What a split can separate, and the words that all rules share."""

from __future__ import annotations

from collections.abc import Callable

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
    """A split that these recordings cannot give."""


def empty() -> Split:
    """Return three parts without recordings."""
    return {part: [] for part in PARTS}


SEPARATED: dict[str, Callable[[AnnotatedRecording], Value]] = {
    "environment": lambda one: one.environment,
    "person": lambda one: one.person_id,
    "recipes": lambda one: one.activity_name,
    "recordings": lambda one: one.recording_id,
    "type": lambda one: one.recording_id,
}
"""Kind -> what its parts must not share."""


def names_of(kind: str, recording: AnnotatedRecording) -> set[str]:
    """Return the values by which a rule's file may mean this recording."""
    names = {str(SEPARATED[kind](recording))}
    return names | {str(recording.activity_id)} if kind == "recipes" else names


def script_number(recording_id: str) -> int:
    """Return N of an id `A_N`. Raises NoSuchSplit."""
    activity, _, number = recording_id.partition("_")
    if not (activity.isdecimal() and number.isdecimal()):
        raise NoSuchSplit(
            f"{recording_id}: is no published id <activity>_<number>; take --ratio and --seed for other data"
        )
    return int(number)


def strata(recordings: list[AnnotatedRecording]) -> list[list[AnnotatedRecording]]:
    """Group recordings by recipe and whether they have errors, by script number in each group where there is one."""
    groups: dict[tuple[int, bool], list[AnnotatedRecording]] = {}
    for one in recordings:
        groups.setdefault((one.activity_id, one.is_error), []).append(one)
    return [groups[key] for key in sorted(groups)]

"""Count a data set: recordings, hours, errors, segments and windows, rounded to four decimals, total hours to three.

A segment is a performed entry; hours are lengths of videos. If two sources disagree, `sources` has both counts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TypedDict

from kitchensync.dataset.source.data_set_folder import DataSet
from kitchensync.dataset.statistics.narrators import (
    NarratorAgreement,
    ReleasedNarration,
    agreement_of_narrators,
)
from kitchensync.dataset.tables.step_rows import done_in_order
from kitchensync.task_graphs.formats.annotations import AnnotatedRecording

WINDOWS = (2, 3, 4, 5)  # numbers of steps in the published clips
HALF = 25
"""Of each 50 numbers in the published ids, the first 25 have no planned errors, the others have."""

Recordings = list[AnnotatedRecording]


class NormalAndErrors(TypedDict):
    """Recordings without and with errors."""

    normal: int
    normal_hours: float
    error: int
    error_hours: float


class OfRecipe(NormalAndErrors):
    """Recordings of a recipe."""

    steps: int | None
    "Steps of its graph."


class ByRecipe(TypedDict):
    """Recordings by recipe."""

    rows: dict[str, OfRecipe]
    total: OfRecipe


class ErrorUses(TypedDict):
    """Errors by category."""

    uses: dict[str, int]
    "An entry may have a category twice."
    entries: dict[str, int]
    recordings: dict[str, int]
    per_recipe: dict[str, dict[str, int]]
    "Recipe: uses by category."


class SegmentCounts(TypedDict):
    """Videos and their segments, which are steps that were done."""

    videos: int
    hours: float
    average_video_minutes: float | None
    segments: int
    segments_per_video: float | None
    average_segment_seconds: float | None
    entries: int
    "Steps, done or not."
    segments_with_errors: int


class SegmentSeconds(TypedDict):
    """Seconds that segments overlap; for `sub_step` both ends are rounded down."""

    seconds: int
    seconds_with_errors: int
    early_seconds_per_entry: int
    "Of the first half of each segment."
    sub_step_seconds: int
    sub_step_seconds_with_errors: int


class WindowSeconds(TypedDict):
    """Clips of consecutive segments, and their seconds."""

    clips: int
    seconds: float


PersonSources = TypedDict(
    "PersonSources",
    {
        "complete_step_annotations.json": dict[str, int],
        "video_information.csv": dict[str, int],
        "differ": list[str],
    },
)
ErrorSources = TypedDict(
    "ErrorSources",
    {"made, by the annotations": int, "planned, by the script number": int, "differ": list[str]},
)


class Sources(TypedDict):
    """Recordings by two sources each, and the recordings in which they differ."""

    person: PersonSources
    errors: ErrorSources


class DataSetStatistics(TypedDict):
    """The object `release-stats/1`."""

    recordings: int
    table11: ByRecipe
    figure19: ErrorUses
    table12: SegmentCounts
    segments: SegmentSeconds
    windows: dict[str, WindowSeconds]
    "By number of segments."
    stated: dict[str, dict[str, int]]
    "What was stated of recipes and participants: count by value."
    narrations: NarratorAgreement
    sources: Sources
    films_of_unknown_length: list[str]
    "Recordings, which count 0 hours."
    warnings: list[str]


def statistics(
    data: DataSet,
    steps: Mapping[str, int],
    narrated: Mapping[str, Sequence[ReleasedNarration]],
    warnings: list[str],
) -> DataSetStatistics:
    """Return all counts as JSON.

    `steps` is the number of steps by graph file; `narrated` are the narrations by recording.
    """
    recordings = list(data.annotations.recordings)
    return {
        "recordings": len(recordings),
        "table11": _by_recipe(data, steps, recordings),
        "figure19": _errors(recordings),
        "table12": _segments(data, recordings),
        "segments": _seconds(recordings),
        "windows": {str(size): _windows(recordings, size) for size in WINDOWS},
        "stated": _stated(data),
        "narrations": agreement_of_narrators(narrated),
        "sources": _sources(data, recordings),
        "films_of_unknown_length": [
            recording.recording_id for recording in recordings if recording.recording_id not in data.lengths_s
        ],
        "warnings": warnings,
    }


def _hours(data: DataSet, recordings: Iterable[AnnotatedRecording]) -> float:
    return sum(data.lengths_s.get(recording.recording_id, 0.0) for recording in recordings) / 3600


def _by_recipe(data: DataSet, steps: Mapping[str, int], recordings: Recordings) -> ByRecipe:
    rows: dict[str, OfRecipe] = {}
    for name in sorted({recording.activity_name for recording in recordings}):
        of_recipe = [recording for recording in recordings if recording.activity_name == name]
        rows[name] = {**_normal_and_errors(data, of_recipe, 4), "steps": steps.get(of_recipe[0].graph_stem)}
    total = sum(row["steps"] or 0 for row in rows.values())
    return {"rows": rows, "total": {"steps": total, **_normal_and_errors(data, recordings, 3)}}


def _normal_and_errors(data: DataSet, recordings: Recordings, places: int) -> NormalAndErrors:
    normal = [recording for recording in recordings if not recording.is_error]
    with_errors = [recording for recording in recordings if recording.is_error]
    return {
        "normal": len(normal),
        "normal_hours": round(_hours(data, normal), places),
        "error": len(with_errors),
        "error_hours": round(_hours(data, with_errors), places),
    }


def _errors(recordings: Recordings) -> ErrorUses:
    """Count tags: uses (an entry may have a tag twice), entries and recordings with the tag."""
    uses, entries, of_recordings = Counter[str](), Counter[str](), Counter[str]()
    per_recipe: dict[str, Counter[str]] = {}
    for recording in recordings:
        tags = [[error.tag for error in entry.errors] for entry in recording.entries]
        per_recipe.setdefault(recording.activity_name, Counter()).update(chain.from_iterable(tags))
        uses.update(chain.from_iterable(tags))
        entries.update(chain.from_iterable(map(set, tags)))
        of_recordings.update(set(chain.from_iterable(tags)))
    return {
        "uses": _falling(uses),
        "entries": _falling(entries),
        "recordings": _falling(of_recordings),
        "per_recipe": {name: dict(counts) for name, counts in sorted(per_recipe.items())},
    }


def _falling(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _segments(data: DataSet, recordings: Recordings) -> SegmentCounts:
    entries = [entry for recording in recordings for entry in recording.entries]
    done = [entry for entry in entries if entry.performed]
    hours = _hours(data, recordings)
    return {
        "videos": len(recordings),
        "hours": round(hours, 4),
        "average_video_minutes": _mean(hours * 60, len(recordings)),
        "segments": len(done),
        "segments_per_video": _mean(len(done), len(recordings)),
        "average_segment_seconds": _mean(sum(entry.end_s - entry.start_s for entry in done), len(done)),
        "entries": len(entries),
        "segments_with_errors": sum(bool(entry.errors) for entry in done),
    }


def _mean(total: float, count: int) -> float | None:
    return round(total / count, 4) if count else None


def _seconds(recordings: Recordings) -> SegmentSeconds:
    """Count the seconds that segments overlap, and their first halves; for `sub_step` both ends are rounded down."""
    done = [entry for recording in recordings for entry in recording.entries if entry.performed]
    touched = [(math.ceil(entry.end_s) - math.floor(entry.start_s), entry) for entry in done]
    whole = [(math.floor(entry.end_s) - math.floor(entry.start_s), entry) for entry in done]
    return {
        "seconds": sum(count for count, _ in touched),
        "seconds_with_errors": sum(count for count, entry in touched if entry.errors),
        "early_seconds_per_entry": sum(count // 2 for count, _ in touched),
        "sub_step_seconds": sum(count for count, _ in whole),
        "sub_step_seconds_with_errors": sum(count for count, entry in whole if entry.errors),
    }


def _windows(recordings: Recordings, size: int) -> WindowSeconds:
    """Count clips of `size` consecutive segments, and their seconds from the first start to the last end."""
    lengths = []
    for recording in recordings:
        done = done_in_order(recording)
        for first in range(len(done) - size + 1):
            clip = done[first : first + size]
            lengths.append(max(entry.end_s for entry in clip) - clip[0].start_s)
    return {"clips": len(lengths), "seconds": round(sum(lengths), 3)}


def _stated(data: DataSet) -> dict[str, dict[str, int]]:
    """Count recipes by heating, skills and tools, and participants by group, as far as stated."""
    recipes = [line for line in data.stated if line["kind"] == "recipe"]
    tables: dict[str, dict[str, int]] = {
        f"recipes by {key}": _falling(Counter(value for line in recipes for value in line.get(key, [])))
        for key in ("heating", "skills", "tools")
    }
    for line in data.stated:
        if line["kind"] == "participants":
            tables |= {
                "participants by age": line.get("age", {}),
                "participants by cooking": line.get("cooks", {}),
                "participants by gender": line.get("gender", {}),
                "participants by hand": line.get("hand", {}),
            }
    return {name: counts for name, counts in tables.items() if counts}


def _sources(data: DataSet, recordings: Recordings) -> Sources:
    """Count people and errors by two sources each: both files, planned and made errors."""
    table = {row[0]: row for row in data.annotations.videos[1:]}
    both = [(r, table[r.recording_id]) for r in recordings if r.recording_id in table]
    planned = {}
    for recording in recordings:
        activity, _, number = recording.recording_id.partition("_")
        if activity.isdecimal() and number.isdecimal():
            planned[recording.recording_id] = (int(number) - 1) % (2 * HALF) >= HALF
    numbered = [recording for recording in recordings if recording.recording_id in planned]
    return {
        "person": {
            "complete_step_annotations.json": _counted(recording.person_id for recording, _ in both),
            "video_information.csv": _counted(int(row[2]) for _, row in both),
            "differ": [r.recording_id for r, row in both if str(r.person_id) != row[2]],
        },
        "errors": {
            "made, by the annotations": sum(recording.is_error for recording in numbered),
            "planned, by the script number": sum(planned.values()),
            "differ": [r.recording_id for r in numbered if r.is_error != planned[r.recording_id]],
        },
    }


def _counted(values: Iterable[int]) -> dict[str, int]:
    return {str(value): count for value, count in sorted(Counter(values).items())}

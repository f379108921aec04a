"""Count a data set: recordings, hours, errors, segments and windows, rounded to four decimals, total hours to three.

A segment is an entry that was performed; hours are lengths of films. Where two sources disagree both counts are
given, under `sources`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from kitchensync.dataset.source.data_set_folder import DataSet
from kitchensync.dataset.statistics.narrators import ReleasedNarration, agreement_of_narrators
from kitchensync.dataset.tables.step_rows import done_in_order
from kitchensync.task_graphs.formats.annotations import AnnotatedRecording

WINDOWS = (2, 3, 4, 5)
HALF = 25
"""Of each 50 numbers in the published ids the first half are scripts meant as correct, the others have errors."""

Recordings = list[AnnotatedRecording]


def statistics(
    data: DataSet, steps: Mapping[str, int], narrated: Mapping[str, Sequence[ReleasedNarration]]
) -> dict[str, Any]:
    """Return everything that is counted, as JSON holds it.

    `steps` are those of each recipe's graph, by its file; `narrated` what people said of films, by recording.
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
            one.recording_id for one in recordings if one.recording_id not in data.lengths_s
        ],
    }


def _hours(data: DataSet, recordings: Iterable[AnnotatedRecording]) -> float:
    return sum(data.lengths_s.get(one.recording_id, 0.0) for one in recordings) / 3600


def _by_recipe(data: DataSet, steps: Mapping[str, int], recordings: Recordings) -> dict[str, Any]:
    rows = {}
    for name in sorted({one.activity_name for one in recordings}):
        ours = [one for one in recordings if one.activity_name == name]
        rows[name] = {**_normal_and_errors(data, ours, 4), "steps": steps.get(ours[0].graph_stem)}
    total = sum(row["steps"] or 0 for row in rows.values())
    return {"rows": rows, "total": {"steps": total, **_normal_and_errors(data, recordings, 3)}}


def _normal_and_errors(data: DataSet, recordings: Recordings, places: int) -> dict[str, Any]:
    normal = [one for one in recordings if not one.is_error]
    wrong = [one for one in recordings if one.is_error]
    return {
        "normal": len(normal),
        "normal_hours": round(_hours(data, normal), places),
        "error": len(wrong),
        "error_hours": round(_hours(data, wrong), places),
    }


def _errors(recordings: Recordings) -> dict[str, Any]:
    """Count tags: every use (a tag may stand twice at an entry), entries and recordings that have it."""
    uses, entries, of_recordings = Counter[str](), Counter[str](), Counter[str]()
    per_recipe: dict[str, Counter[str]] = {}
    for one in recordings:
        tags = [[error.tag for error in entry.errors] for entry in one.entries]
        per_recipe.setdefault(one.activity_name, Counter()).update(chain.from_iterable(tags))
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
    return dict(sorted(counts.items(), key=lambda one: (-one[1], one[0])))


def _segments(data: DataSet, recordings: Recordings) -> dict[str, Any]:
    entries = [entry for one in recordings for entry in one.entries]
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


def _seconds(recordings: Recordings) -> dict[str, int]:
    """Count the seconds that segments touch, entry by entry, and of each the first half; `sub_step`: whole ends."""
    done = [entry for one in recordings for entry in one.entries if entry.performed]
    touched = [(math.ceil(entry.end_s) - math.floor(entry.start_s), entry) for entry in done]
    whole = [(math.floor(entry.end_s) - math.floor(entry.start_s), entry) for entry in done]
    return {
        "seconds": sum(count for count, _ in touched),
        "seconds_with_errors": sum(count for count, entry in touched if entry.errors),
        "early_seconds_per_entry": sum(count // 2 for count, _ in touched),
        "sub_step_seconds": sum(count for count, _ in whole),
        "sub_step_seconds_with_errors": sum(count for count, entry in whole if entry.errors),
    }


def _windows(recordings: Recordings, size: int) -> dict[str, Any]:
    """Count clips of so many segments in a row, by time, and their seconds from the first start to the last end."""
    lengths = []
    for one in recordings:
        done = done_in_order(one)
        for first in range(len(done) - size + 1):
            clip = done[first : first + size]
            lengths.append(max(entry.end_s for entry in clip) - clip[0].start_s)
    return {"clips": len(lengths), "seconds": round(sum(lengths), 3)}


def _stated(data: DataSet) -> dict[str, Any]:
    """Count recipes by what they are heated with, skills and tools, and participants in bands, as far as stated."""
    recipes = [line for line in data.stated if line["kind"] == "recipe"]
    said: dict[str, Any] = {
        f"recipes by {key}": _falling(Counter(word for line in recipes for word in line.get(key, [])))
        for key in ("heating", "skills", "tools")
    }
    for line in data.stated:
        if line["kind"] == "participants":
            said |= {
                "participants by age": line.get("age", {}),
                "participants by cooking": line.get("cooks", {}),
                "participants by gender": line.get("gender", {}),
                "participants by hand": line.get("hand", {}),
            }
    return {name: counts for name, counts in said.items() if counts}


def _sources(data: DataSet, recordings: Recordings) -> dict[str, Any]:
    """Count the same by two sources: who cooked, and whether errors were meant and made."""
    table = {row[0]: row for row in data.annotations.videos[1:]}
    both = [(one, table[one.recording_id]) for one in recordings if one.recording_id in table]
    ids = {one.recording_id: one.recording_id.partition("_")[::2] for one in recordings}
    planned = {
        one: (int(number) - 1) % (2 * HALF) >= HALF
        for one, (activity, number) in ids.items()
        if activity.isdecimal() and number.isdecimal()
    }
    return {
        "person": {
            "complete_step_annotations.json": _counted(one.person_id for one, _ in both),
            "video_information.csv": _counted(int(row[2]) for _, row in both),
            "differ": [one.recording_id for one, row in both if str(one.person_id) != row[2]],
        },
        "errors": {
            "made, by the annotations": sum(one.is_error for one in recordings if one.recording_id in planned),
            "planned, by the script number": sum(planned.values()),
            "differ": [
                one.recording_id for one in recordings
                if one.recording_id in planned and one.is_error != planned[one.recording_id]
            ],
        },
    }  # fmt: skip


def _counted(values: Iterable[int]) -> dict[str, int]:
    return {str(value): count for value, count in sorted(Counter(values).items())}

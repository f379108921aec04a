"""Write the published CaptainCook4D annotation files, byte for byte, from `Annotations`.

The oddities of the published files are kept: the CSV repeats one column name eight times, gives every tagged category
the text of the entry's *last* error, and lists recordings by their number without the underscore.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from kitchensync.task_graphs.formats.annotations import (
    AVERAGES,
    CATEGORIES,
    COMPLETE,
    ERRORS,
    SPLITS,
    STEP_TEXTS,
    VIDEOS,
    AnnotatedRecording,
    Annotations,
)

Row = Iterable[object]


def format_annotations(annotations: Annotations) -> dict[str, str]:
    """Return relative path -> text of every annotation file."""
    files = {
        COMPLETE: _indented({r.recording_id: _complete(r) for r in annotations.recordings}),
        ERRORS: _indented([_with_errors(r) for r in annotations.recordings]),
        "annotation_json/step_annotations.json": _indented(
            {
                r.recording_id: {"recording_id": r.recording_id, "steps": _steps(r)}
                for r in annotations.recordings
            }
        ),
        "annotation_json/recording_id_step_idx.json": _indented(
            {r.recording_id: [entry.step_id for entry in r.entries] for r in annotations.recordings}
        ),
        "annotation_json/activity_idx_step_idx.json": _indented(
            {str(activity): ids for activity, (_, ids) in _by_activity(annotations.recordings).items()}
        ),
        STEP_TEXTS: _indented({str(key): text for key, text in annotations.step_texts.items()}),
        CATEGORIES: _indented(annotations.categories),
    }
    files |= {f"annotation_csv/{name}.csv": text for name, text in _tables(annotations)}
    files[AVERAGES] = annotations.averages or _averages(annotations.recordings)
    if annotations.videos:
        files[VIDEOS] = "".join(",".join(row) + "\n" for row in annotations.videos)
    files |= {path: json.dumps(annotations.splits[path]) for path in SPLITS if path in annotations.splits}
    return files


def _indented(document: Any) -> str:
    return json.dumps(document, indent=4)


def _steps(recording: AnnotatedRecording) -> list[dict[str, Any]]:
    return [
        {
            "step_id": entry.step_id,
            "start_time": entry.start_s,
            "end_time": entry.end_s,
            "description": entry.description,
            "has_errors": bool(entry.errors),
        }
        for entry in recording.entries
    ]


def _complete(recording: AnnotatedRecording) -> dict[str, Any]:
    return {
        "recording_id": recording.recording_id,
        "activity_id": recording.activity_id,
        "activity_name": recording.activity_name,
        "person_id": recording.person_id,
        "environment": recording.environment,
        "steps": _steps(recording),
    }


def _with_errors(recording: AnnotatedRecording) -> dict[str, Any]:
    steps = []
    for entry in recording.entries:
        step: dict[str, Any] = {"description": entry.description, "step_id": entry.step_id}
        if entry.errors:
            step["errors"] = [{"tag": error.tag, "description": error.description} for error in entry.errors]
        step |= {"start_time": entry.start_s, "end_time": entry.end_s}
        if entry.modified is not None:
            step["modified_description"] = entry.modified
        steps.append(step)
    return {
        "recording_id": recording.recording_id,
        "activity_id": recording.activity_id,
        "is_error": recording.is_error,
        "step_annotations": steps,
    }


def _by_activity(recordings: Iterable[AnnotatedRecording]) -> dict[int, tuple[str, list[int]]]:
    activities: dict[int, tuple[str, list[int]]] = {}
    for recording in recordings:
        _, ids = activities.setdefault(recording.activity_id, (recording.activity_name, []))
        ids += [entry.step_id for entry in recording.entries]
    return activities


def _tables(annotations: Annotations) -> Iterator[tuple[str, str]]:
    recordings = annotations.recordings
    numbered = sorted(recordings, key=_by_number)
    step_columns = ("recording_id", "step_id", "start_time", "end_time", "description", "has_errors")
    step_rows = (
        (r.recording_id, e.step_id, e.start_s, e.end_s, e.description, bool(e.errors))
        for r in recordings
        for e in r.entries
    )
    yield "step_annotations", _table(step_columns, step_rows)
    error_columns = (c for name in annotations.categories for c in (name, "error_description"))
    yield "error_annotations", _table((*step_columns, *error_columns), _error_rows(annotations))
    yield (
        "recording_id_step_idx",
        _table(
            ("recording_id", "activity_id", "step_indices"),
            ((r.recording_id, r.activity_id, _ids(e.step_id for e in r.entries)) for r in numbered),
        ),
    )
    by_activity = _by_activity(numbered)
    yield (
        "activity_idx_step_idx",
        _table(
            ("activity_idx", "activity_name", "step_indices"),
            ((activity, name, _ids(ids)) for activity, (name, ids) in sorted(by_activity.items())),
        ),
    )
    yield (
        "step_idx_description",
        _table(("step_idx", "step_description"), sorted(annotations.step_texts.items())),
    )
    yield (
        "error_category_idx",
        _table(
            ("error_category_idx", "error_category"),
            ((n, name) for name, n in annotations.categories.items()),
        ),
    )


def _by_number(recording: AnnotatedRecording) -> tuple[int, int, str]:
    """Return the sort key of the published tables; ids that are not numbers come last, by their text."""
    try:
        return 0, int(recording.recording_id.replace("_", "")), ""
    except ValueError:
        return 1, 0, recording.recording_id


def _table(columns: Row, rows: Iterable[Row]) -> str:
    lines = [",".join('"' + str(cell).replace('"', '""') + '"' for cell in row) for row in (columns, *rows)]
    return "\n".join(lines) + "\n"


def _ids(ids: Iterable[int]) -> str:
    return ",".join(map(str, ids))


def _error_rows(annotations: Annotations) -> Iterator[Row]:
    for recording in annotations.recordings:
        for e in recording.entries:
            times = (e.start_s, e.end_s) if e.performed else (None, None)
            row: list[object] = [recording.recording_id, e.step_id, *times, e.description, bool(e.errors)]
            for name in annotations.categories:
                row += [1, e.errors[-1].description] if e.has_tag(name) else [0, None]
            yield row


def _averages(recordings: Iterable[AnnotatedRecording]) -> str:
    lengths: dict[tuple[int, str], list[float]] = {}
    for r in recordings:
        key = (r.activity_id, r.activity_name)
        lengths.setdefault(key, []).extend(e.end_s - e.start_s for e in r.entries if e.performed)
    rows = (
        (*key, sum(lengths_s) / len(lengths_s)) for key, lengths_s in sorted(lengths.items()) if lengths_s
    )
    return _table(("activity_id", "activity_name", "average_segment_length"), rows)

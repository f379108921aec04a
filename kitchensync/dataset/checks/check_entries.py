"""Annotations: one form in all files, ids, texts, times within the film."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict

from kitchensync.dataset.checks.release_faults import DataSetUnderCheck
from kitchensync.task_graphs.formats.annotation_files import format_annotations
from kitchensync.task_graphs.formats.annotations import (
    AVERAGES,
    ERRORS,
    MISSING_STEP,
    STEP_TEXTS,
    VIDEOS,
    AnnotatedRecording,
    Entry,
)

PUBLISHED_ID = re.compile(r"[1-9][0-9]*_[1-9][0-9]*")
SLACK_S = 0.05
"""Half a picture and the rounding of two tables."""


def check_entries(checked: DataSetUnderCheck) -> None:
    """Check every recording and entry, and that all files say the same of them."""
    _forms(checked)
    for recording_id, count in Counter(checked.ids).items():
        if count > 1:
            checked.found.differs(ERRORS, recording_id, "one recording of an id", f"{count}")
    lengths = film_lengths(checked)
    for one in checked.annotations.recordings:
        if not PUBLISHED_ID.fullmatch(one.recording_id):
            checked.found.differs(ERRORS, one.recording_id, "<activity>_<number>", "another id")
        elif int(one.recording_id.partition("_")[0]) != one.activity_id:
            checked.found.differs(ERRORS, one.recording_id, f"an id of recipe {one.activity_id}", "another")
        for place, entry in enumerate(one.entries):
            _entry(checked, one, place, entry, lengths.get(one.recording_id, math.nan))


def _forms(checked: DataSetUnderCheck) -> None:
    for name, text in format_annotations(checked.annotations).items():
        if name == AVERAGES and checked.annotations.averages is not None:
            continue  # see check_lengths.py
        if name not in checked.texts:
            checked.found.differs(name, "", "the file", "no file")
        elif checked.texts[name] != text:
            line = _first_other(checked.texts[name], text)
            checked.found.differs(
                name, f"line {line}", "the form and content of the other files", "other content"
            )
    for contrary in checked.annotations.contradictions:
        checked.found.differs(ERRORS, contrary, "the steps of the other files", "other steps")


def _first_other(text: str, other: str) -> int:
    lines = zip(text.split("\n"), other.split("\n"), strict=False)
    return next(
        (n for n, (a, b) in enumerate(lines, start=1) if a != b), min(text.count("\n"), other.count("\n")) + 1
    )


def _entry(
    checked: DataSetUnderCheck, one: AnnotatedRecording, place: int, entry: Entry, film_s: float
) -> None:
    where = f"{one.recording_id}[{place}]"
    said = checked.annotations.step_texts.get(entry.step_id)
    if said is None:
        checked.found.differs(STEP_TEXTS, where, f"a text of step {entry.step_id}", "none")
    elif said != entry.description:
        checked.flaw(ERRORS, where, said, entry.description)
    if known := [error.tag for error in entry.errors if error.tag not in checked.annotations.categories]:
        checked.found.differs(ERRORS, where, "a category of error_category_idx.json", known[0])
    if not entry.performed:
        if (entry.start_s, entry.end_s) != (-1, -1):
            checked.flaw(
                ERRORS, where, "-1 and -1 for a step that was not done", f"{entry.start_s} to {entry.end_s}"
            )
        return
    if entry.end_s < entry.start_s:
        checked.flaw(ERRORS, where, "an end after the start", f"{entry.start_s} to {entry.end_s}")
    elif entry.end_s > film_s + SLACK_S:
        checked.flaw(ERRORS, where, f"times within {film_s} s", f"{entry.start_s} to {entry.end_s}")
    if entry.has_tag(MISSING_STEP) and not checked.is_own:
        checked.flaw(ERRORS, where, "no times of a missing step", f"{entry.start_s} to {entry.end_s}")


def film_lengths(checked: DataSetUnderCheck) -> dict[str, float]:
    """Return the seconds of each film by recording id, as VIDEOS states them in numbers."""
    rows = checked.annotations.videos[1:]
    return {row[0]: float(row[-1]) for row in rows if re.fullmatch(r"[0-9]+(\.[0-9]+)?", row[-1])}


def videos_table(checked: DataSetUnderCheck) -> dict[str, list[tuple[str, ...]]]:
    """Return the rows of VIDEOS by recording id."""
    rows: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for row in checked.annotations.videos[1:]:
        rows[row[0]].append(row)
    if VIDEOS in checked.texts and not checked.annotations.videos:
        checked.found.differs(VIDEOS, "", "rows", "an empty file")
    return rows

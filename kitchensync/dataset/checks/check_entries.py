"""Annotations and tables of numbers: one form in all files, ids, texts, times within the film, lengths."""

from __future__ import annotations

import csv
import io
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
    for name, text in format_annotations(checked.annotations).items():
        if name == AVERAGES and checked.annotations.averages is not None:
            continue  # see check_lengths
        if name not in checked.texts:
            checked.found.differs(name, "", "the file", "no file")
        elif checked.texts[name] != text:
            pairs = list(zip(checked.texts[name].split("\n"), text.split("\n"), strict=False))
            line = next((n for n, (a, b) in enumerate(pairs, start=1) if a != b), len(pairs))
            content = "the form and content of the other files"
            checked.found.differs(name, f"line {line}", content, "other content")
    for contrary in checked.annotations.contradictions:
        checked.found.differs(ERRORS, contrary, "the steps of the other files", "other steps")
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


SAME = 1e-6


def check_lengths(checked: DataSetUnderCheck) -> None:
    """Check that the tables hold every recording once and agree with the annotations."""
    rows: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for row in checked.annotations.videos[1:]:
        rows[row[0]].append(row)
    if VIDEOS in checked.texts and not checked.annotations.videos:
        checked.found.differs(VIDEOS, "", "rows", "an empty file")
    for one in checked.annotations.recordings:
        ours = rows.pop(one.recording_id, [])
        if len(ours) != 1:
            checked.found.differs(VIDEOS, one.recording_id, "one row", f"{len(ours)} rows")
        for row in ours:
            try:
                stated = (int(row[1]), int(row[2]))
                minutes, seconds = float(row[3]), float(row[4])
            except (ValueError, IndexError):
                got = ",".join(row[1:])[:80]
                checked.found.differs(VIDEOS, row[0], "kitchen, person, minutes, seconds", got)
                continue
            if stated != (one.environment, one.person_id):
                want = f"kitchen {one.environment}, person {one.person_id}"
                checked.flaw(VIDEOS, row[0], want, f"kitchen {stated[0]}, person {stated[1]}")
            if abs(minutes - seconds / 60) > 0.0051 or seconds <= 0:
                checked.flaw(VIDEOS, row[0], f"{seconds / 60:.2f} minutes", row[3])
    for other in rows:
        checked.found.differs(VIDEOS, other, "no row", "a row of no recording")
    _averages(checked)


def _averages(checked: DataSetUnderCheck) -> None:
    """Compare the published averages with those of the entries."""
    if checked.annotations.averages is None:
        return
    sums: dict[str, list[float]] = {}
    for one in checked.annotations.recordings:
        lengths = sums.setdefault(str(one.activity_id), [])
        lengths += [entry.end_s - entry.start_s for entry in one.entries if entry.performed]
    for row in list(csv.reader(io.StringIO(checked.annotations.averages)))[1:]:
        ours = sums.get(row[0]) if row else None
        if not ours:
            continue  # a ruler, the line of the whole set, or a recipe that is not in this part
        mean = sum(ours) / len(ours)
        try:
            is_wrong = len(row) != 3 or abs(float(row[2]) - mean) > SAME
        except ValueError:
            is_wrong = True
        if is_wrong:
            checked.flaw(AVERAGES, f"recipe {row[0]}", f"{mean:.6f} s", row[-1])

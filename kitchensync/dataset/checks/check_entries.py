"""Check annotations and tables: the same content in all files, ids, texts, times within the video, lengths."""

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
    Entry,
)

PUBLISHED_ID = re.compile(r"[1-9][0-9]*_[1-9][0-9]*")
SLACK_S = 0.05
"""Tolerance of times: half a frame and the rounding of two tables, seconds."""


def check_entries(checked: DataSetUnderCheck) -> None:
    """Check every recording and entry, and that all files agree on them."""
    for name, text in format_annotations(checked.annotations).items():
        if name == AVERAGES and checked.annotations.averages is not None:
            continue  # see check_lengths
        if name not in checked.texts:
            checked.faults.differs(name, "", "the file", "no file")
        elif checked.texts[name] != text:
            pairs = list(zip(checked.texts[name].split("\n"), text.split("\n"), strict=False))
            line = next((n for n, (a, b) in enumerate(pairs, start=1) if a != b), len(pairs))
            content = "the form and content of the other files"
            checked.faults.differs(name, f"line {line}", content, "other content")
    for contrary in checked.annotations.contradictions:
        checked.faults.differs(ERRORS, contrary, "the steps of the other files", "other steps")
    for recording_id, count in Counter(checked.ids).items():
        if count > 1:
            checked.faults.differs(ERRORS, recording_id, "one recording of an id", f"{count}")
    lengths = film_lengths(checked)
    for recording in checked.annotations.recordings:
        id_ = recording.recording_id
        if not PUBLISHED_ID.fullmatch(id_):
            checked.faults.differs(ERRORS, id_, "<activity>_<number>", "another id")
        elif int(id_.partition("_")[0]) != recording.activity_id:
            checked.faults.differs(ERRORS, id_, f"an id of recipe {recording.activity_id}", "another")
        for place, entry in enumerate(recording.entries):
            _entry(checked, f"{id_}[{place}]", entry, lengths.get(id_, math.nan))


def _entry(checked: DataSetUnderCheck, where: str, entry: Entry, film_s: float) -> None:
    text = checked.annotations.step_texts.get(entry.step_id)
    if text is None:
        checked.faults.differs(STEP_TEXTS, where, f"a text of step {entry.step_id}", "none")
    elif text != entry.description:
        checked.flaw(ERRORS, where, text, entry.description)
    if unknown := [error.tag for error in entry.errors if error.tag not in checked.annotations.categories]:
        checked.faults.differs(ERRORS, where, "a category of error_category_idx.json", unknown[0])
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
    """Return the length of each video by recording id, seconds, from the rows of VIDEOS with a number."""
    rows = checked.annotations.videos[1:]
    return {row[0]: float(row[-1]) for row in rows if re.fullmatch(r"[0-9]+(\.[0-9]+)?", row[-1])}


SAME = 1e-6


def check_lengths(checked: DataSetUnderCheck) -> None:
    """Check that the tables have every recording once and agree with the annotations."""
    rows: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for row in checked.annotations.videos[1:]:
        rows[row[0]].append(row)
    if VIDEOS in checked.texts and not checked.annotations.videos:
        checked.faults.differs(VIDEOS, "", "rows", "an empty file")
    for recording in checked.annotations.recordings:
        of_recording = rows.pop(recording.recording_id, [])
        if len(of_recording) != 1:
            checked.faults.differs(VIDEOS, recording.recording_id, "one row", f"{len(of_recording)} rows")
        for row in of_recording:
            try:
                kitchen, person = int(row[1]), int(row[2])
                minutes, seconds = float(row[3]), float(row[4])
            except (ValueError, IndexError):
                got = ",".join(row[1:])[:80]
                checked.faults.differs(VIDEOS, row[0], "kitchen, person, minutes, seconds", got)
                continue
            if (kitchen, person) != (recording.environment, recording.person_id):
                want = f"kitchen {recording.environment}, person {recording.person_id}"
                checked.flaw(VIDEOS, row[0], want, f"kitchen {kitchen}, person {person}")
            if abs(minutes - seconds / 60) > 0.0051 or seconds <= 0:
                checked.flaw(VIDEOS, row[0], f"{seconds / 60:.2f} minutes", row[3])
    for other in rows:
        checked.faults.differs(VIDEOS, other, "no row", "a row of no recording")
    _averages(checked)


def _averages(checked: DataSetUnderCheck) -> None:
    """Compare the published averages with those of the entries."""
    if checked.annotations.averages is None:
        return
    by_recipe: dict[str, list[float]] = defaultdict(list)
    for recording in checked.annotations.recordings:
        lengths = [entry.end_s - entry.start_s for entry in recording.entries if entry.performed]
        by_recipe[str(recording.activity_id)] += lengths
    for row in list(csv.reader(io.StringIO(checked.annotations.averages)))[1:]:
        lengths = by_recipe.get(row[0], []) if row else []
        if not lengths:
            continue  # a separator, the line of the whole set, or a recipe that is not in this part
        mean = sum(lengths) / len(lengths)
        try:
            is_wrong = len(row) != 3 or abs(float(row[2]) - mean) > SAME
        except ValueError:
            is_wrong = True
        if is_wrong:
            checked.flaw(AVERAGES, f"recipe {row[0]}", f"{mean:.6f} s", row[-1])

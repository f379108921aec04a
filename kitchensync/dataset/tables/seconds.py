"""One row for each second, or two, of each step: the sub-segments of error recognition.

The published grid has whole seconds of the recording: a step has all seconds that it overlaps, the entries of a step
are joined, and the last entry's label counts for all of them; corrected, each entry has its own label. The other grid
begins at the start of each entry.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from kitchensync.task_graphs.categories import TAG_OF_COLUMN
from kitchensync.task_graphs.formats.annotations import AnnotatedRecording, Entry, Seconds

COLUMNS = ("recording", "step_id", "second", "label")
LABELS = {"preparation": 2, "temperature": 3, "measurement": 4, "timing": 5, "technique": 6}
"""Category -> published label; everything else has label 0."""

Row = tuple[str, int, Seconds, int]
Task = Literal["er", "eer", "ecr"]


@dataclass(frozen=True)
class SubSegments:
    """Options: error recognition (er), early (eer, first halves) or by category (ecr); rows of `window_s`."""

    task: Task = "er"
    window_s: int = 1
    category: str | None = None
    by_segment: bool = False
    corrected: bool = False

    def rows(self, recording: AnnotatedRecording) -> Iterator[Row]:
        """Yield the rows of a recording, step by step in the order of the entries."""
        for entries in self._joined(recording):
            starts: list[Seconds] = []
            for entry in (entry for entry in entries if entry.performed):
                if self.by_segment:
                    count = math.ceil((entry.end_s - entry.start_s) / self.window_s)
                    starts += [entry.start_s + self.window_s * number for number in range(count)]
                else:
                    first, stop = entry.start_s / self.window_s, entry.end_s / self.window_s
                    starts += [self.window_s * n for n in range(math.floor(first), math.ceil(stop))]
            if self.task == "eer":
                starts = starts[: len(starts) // 2]
            label = self.label(entries)
            for start in starts:
                yield recording.recording_id, entries[0].step_id, start, label

    def label(self, entries: list[Entry]) -> int:
        """Return the label of a step: that of its last entry, for categories even if that was not done."""
        if self.task != "ecr":
            performed = [entry for entry in entries if entry.performed]
            return int(bool(performed and performed[-1].errors))
        labels = category_labels(entries[-1])
        if self.category is None:
            return labels[0] if labels else 0
        return int(LABELS[self.category] in labels)

    def _joined(self, recording: AnnotatedRecording) -> list[list[Entry]]:
        if self.by_segment or self.corrected:
            return [[entry] for entry in recording.entries if entry.performed]
        by_step: dict[int, list[Entry]] = {}
        for entry in recording.entries:
            by_step.setdefault(entry.step_id, []).append(entry)
        performed = [entry.step_id for entry in recording.entries if entry.performed]
        return [by_step[step_id] for step_id in dict.fromkeys(performed)]

    def overruled(self, recording: AnnotatedRecording) -> int:
        """Count the entries with another label than their step's last entry."""
        return sum(
            self.label([entry]) != self.label(entries)
            for entries in self._joined(recording)
            for entry in entries
            if entry.performed
        )


def with_both_labels(rows: Iterable[Row]) -> int:
    """Count the seconds of a step with several labels from overlapping entries."""
    labels: dict[tuple[str, int, Seconds], set[int]] = defaultdict(set)
    for recording, step_id, second, label in rows:
        labels[recording, step_id, second].add(label)
    return sum(len(of_second) > 1 for of_second in labels.values())


def category_labels(entry: Entry) -> list[int]:
    """Return the labels of an entry's categories, in the order of its tags, each once."""
    labels = {TAG_OF_COLUMN[column]: label for column, label in LABELS.items()}
    return list(dict.fromkeys(labels[error.tag] for error in entry.errors if error.tag in labels))


def with_several_categories(recording: AnnotatedRecording) -> int:
    """Count the entries with several categories, of which a single label holds only the first."""
    return sum(len(category_labels(entry)) > 1 for entry in recording.entries)

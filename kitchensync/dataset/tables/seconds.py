"""One row for each second, or two, of each step: the sub-segments of error recognition.

The published grid is the recording's: a step has the seconds that it touches, its entries are joined by step, and the
last entry's label counts for all of them; corrected, each entry has its own. The segment's own grid counts from the
start of each entry.
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
"""Category -> its published label; everything else has label 0."""

Row = tuple[str, int, Seconds, int]
Task = Literal["er", "eer", "ecr"]


@dataclass(frozen=True)
class SubSegments:
    """Which rows are asked for: error recognition, early (first halves), or by category; `window_s` seconds each."""

    task: Task = "er"
    window_s: int = 1
    category: str | None = None
    by_segment: bool = False
    corrected: bool = False

    def rows(self, one: AnnotatedRecording) -> Iterator[Row]:
        """Yield the rows of a recording, step by step in the order of the entries."""
        for entries in self._joined(one):
            starts: list[Seconds] = []
            for entry in (entry for entry in entries if entry.performed):
                if self.by_segment:
                    count = math.ceil((entry.end_s - entry.start_s) / self.window_s)
                    starts += [entry.start_s + self.window_s * number for number in range(count)]
                else:
                    first, behind = entry.start_s / self.window_s, entry.end_s / self.window_s
                    grid = range(math.floor(first), math.ceil(behind))
                    starts += [self.window_s * number for number in grid]
            if self.task == "eer":
                starts = starts[: len(starts) // 2]
            label = self.label(entries)
            for start in starts:
                yield one.recording_id, entries[0].step_id, start, label

    def label(self, entries: list[Entry]) -> int:
        """Return the label of a step's entries: the last one counts, for categories also one that was not done."""
        if self.task != "ecr":
            performed = [entry for entry in entries if entry.performed]
            return int(bool(performed and performed[-1].errors))
        labels = category_labels(entries[-1])
        if self.category is None:
            return labels[0] if labels else 0
        return int(LABELS[self.category] in labels)

    def _joined(self, one: AnnotatedRecording) -> list[list[Entry]]:
        if self.by_segment or self.corrected:
            return [[entry] for entry in one.entries if entry.performed]
        found: dict[int, list[Entry]] = {}
        for entry in one.entries:
            found.setdefault(entry.step_id, []).append(entry)
        ordered = [entry.step_id for entry in one.entries if entry.performed]
        return [found[step_id] for step_id in dict.fromkeys(ordered)]

    def overruled(self, one: AnnotatedRecording) -> int:
        """Count the entries whose own label is another than the one that their step's last entry gives them."""
        return sum(
            self.label([entry]) != self.label(entries)
            for entries in self._joined(one)
            for entry in entries
            if entry.performed
        )


def with_both_labels(rows: Iterable[Row]) -> int:
    """Count the seconds of a step to which overlapping entries give several labels."""
    labels: dict[tuple[str, int, Seconds], set[int]] = defaultdict(set)
    for recording, step_id, second, label in rows:
        labels[recording, step_id, second].add(label)
    return sum(len(one) > 1 for one in labels.values())


def category_labels(entry: Entry) -> list[int]:
    """Return the labels of an entry's categories, in the order of its tags, each once."""
    labels = {TAG_OF_COLUMN[column]: label for column, label in LABELS.items()}
    return list(dict.fromkeys(labels[error.tag] for error in entry.errors if error.tag in labels))


def with_several_categories(one: AnnotatedRecording) -> int:
    """Count the entries of which a single label can tell only a part."""
    return sum(len(category_labels(entry)) > 1 for entry in one.entries)

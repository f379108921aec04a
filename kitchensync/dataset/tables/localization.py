"""When each step was done, by film and part: the form in which the published localization code reads it.

Its oddities are kept unless `drop_missing` is asked for: a step that was not done is at -1 s, and no recording
has errors.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from kitchensync.dataset.source.data_set_folder import DataSet
from kitchensync.task_graphs.errors import BadGraph
from kitchensync.task_graphs.formats.annotations import VIDEOS, AnnotatedRecording
from kitchensync.task_graphs.formats.strict_json import Reader, load

SPLIT_FILE = re.compile(r"([a-z]+)_data_split_(combined|normal)\.json")
PARTS = ("train", "val", "test")

Split = dict[str, list[str]]


def parse_split(text: str, name: str, known: Iterable[str]) -> Split | None:
    """Read a file of parts; None where it divides steps, not recordings.

    Raises BadGraph, also for a recording that is not `known` or stands in it twice.
    """
    read, known, seen = Reader(name), frozenset(known), set[str]()
    found = read.object(load(text, name), "")
    read.known_keys(found, set(PARTS), "")
    if any(isinstance(ids, Mapping) for ids in found.values()):
        return None
    split = {part: [read.text(one, part) for one in read.array(found.get(part, []), part)] for part in PARTS}
    for part, ids in split.items():
        for one in ids:
            if one not in known:
                raise read.fail(part, f"{one} is not in the data set; take both from one release")
            if one in seen:
                raise read.fail(part, f"{one} stands in it twice")
            seen.add(one)
    return split


SUBSETS = {"train": "Training", "val": "Validation", "test": "Test"}
PUBLISHED_CLASSES = 353
"""Steps of the published set and one for none, whichever part of it is at hand."""


@dataclass(frozen=True)
class Localization:
    """How files are written: `fps` pictures a second, as it was given in `fps_words`."""

    data: DataSet
    fps_words: str
    drop_missing: bool = False

    @property
    def fps(self) -> float:
        """Return pictures a second."""
        return float(Fraction(self.fps_words))

    def file(self, split: Split) -> str:
        """Return the text of one file. Raises BadGraph where the length of a film is not known."""
        by_id = {one.recording_id: one for one in self.data.annotations.recordings}
        database = {
            one: self._recording(by_id[one], SUBSETS[part]) for part, ids in split.items() for one in ids
        }
        known = max(self.data.annotations.step_texts, default=0) + 1
        name, classes = ("KitchenSync", known) if self.data.is_own else ("CaptainCook", PUBLISHED_CLASSES)
        version = f"{name}Dataset-{self.fps_words}fps-{classes}Steps"
        return json.dumps({"version": version, "database": database}, indent=4)

    def _recording(self, one: AnnotatedRecording, subset: str) -> dict[str, object]:
        if one.recording_id not in self.data.lengths_s:
            raise BadGraph(VIDEOS, one.recording_id, "the length of its film is not known; add its line")
        return {
            "subset": subset,
            "duration": self.data.lengths_s[one.recording_id],
            "fps": self.fps,
            "annotations": [
                {
                    "label": entry.description,
                    "segment": [float(entry.start_s), float(entry.end_s)],
                    "segment(frames)": [
                        float(math.floor(entry.start_s * self.fps)),
                        float(math.ceil(entry.end_s * self.fps)),
                    ],
                    "label_id": entry.step_id,
                    "has_error": bool(entry.errors),
                }
                for entry in one.entries
                if entry.performed or not self.drop_missing
            ],
            "has_error": self.drop_missing and one.is_error,
        }


def not_done(data: DataSet, split: Split) -> int:
    """Count the steps of a split that were not done."""
    held = {one for ids in split.values() for one in ids}
    return sum(
        not entry.performed
        for one in data.annotations.recordings
        if one.recording_id in held
        for entry in one.entries
    )


def faults_of(data: DataSet, splits: Mapping[str, Split]) -> list[str]:
    """Name what is wrong in the published form of some splits, a line each."""
    found = [
        f"{name}: {count} steps that were not done stand at -1 s; --corrected leaves them out"
        for name, split in splits.items()
        if (count := not_done(data, split))
    ]
    wrong = {one.recording_id for one in data.annotations.recordings if one.is_error}
    hidden = wrong & {one for split in splits.values() for ids in split.values() for one in ids}
    if hidden:
        found.append(f"{len(hidden)} recordings with errors are said to have none; --corrected says it")
    return found

"""Step times by video and part, in the form of the published localization code.

Its faults are kept unless `drop_missing` is set: a step that was not done is at -1 s, and no recording has errors.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain

from kitchensync.dataset.source.data_set_folder import DataSet
from kitchensync.task_graphs.errors import BadGraph
from kitchensync.task_graphs.formats.annotations import VIDEOS, AnnotatedRecording
from kitchensync.task_graphs.formats.strict_json import Reader, load

SPLIT_FILE = re.compile(r"([a-z]+)_data_split_(combined|normal)\.json")
PARTS = ("train", "val", "test")

Split = dict[str, list[str]]


def parse_split(text: str, name: str, recordings: Iterable[str]) -> Split | None:
    """Read a split of recordings; None if the file divides steps.

    Raises BadGraph, also for a recording that is not in the data set or twice in the file.
    """
    read, data_set, listed = Reader(name), frozenset(recordings), set[str]()
    parts = read.object(load(text, name), "")
    read.known_keys(parts, set(PARTS), "")
    if any(isinstance(ids, Mapping) for ids in parts.values()):
        return None
    split = {part: [read.text(id_, part) for id_ in read.array(parts.get(part, []), part)] for part in PARTS}
    for part, ids in split.items():
        for recording_id in ids:
            if recording_id not in data_set:
                raise read.fail(part, f"{recording_id} is not in the data set; take both from one release")
            if recording_id in listed:
                raise read.fail(part, f"{recording_id} is in it twice")
            listed.add(recording_id)
    return split


SUBSETS = {"train": "Training", "val": "Validation", "test": "Test"}
PUBLISHED_CLASSES = 353
"""Number of steps of the whole published set, and one class for no step."""


@dataclass(frozen=True)
class Localization:
    """Writer of files; `fps_words` is the frame rate as the user entered it."""

    data: DataSet
    fps_words: str
    drop_missing: bool = False

    @property
    def fps(self) -> float:
        """Frames a second."""
        return float(Fraction(self.fps_words))

    def file(self, split: Split) -> str:
        """Return the text of one file. Raises BadGraph if the length of a video is not known."""
        by_id = {recording.recording_id: recording for recording in self.data.annotations.recordings}
        database = {
            id_: self._recording(by_id[id_], SUBSETS[part]) for part, ids in split.items() for id_ in ids
        }
        own_classes = max(self.data.annotations.step_texts, default=0) + 1
        name, classes = ("CaptainCook", PUBLISHED_CLASSES)
        if self.data.is_own:
            name, classes = "KitchenSync", own_classes
        version = f"{name}Dataset-{self.fps_words}fps-{classes}Steps"
        return json.dumps({"version": version, "database": database}, indent=4)

    def _recording(self, recording: AnnotatedRecording, subset: str) -> dict[str, object]:
        if recording.recording_id not in self.data.lengths_s:
            raise BadGraph(
                VIDEOS, recording.recording_id, "the length of its video is not known; add its line"
            )
        return {
            "subset": subset,
            "duration": self.data.lengths_s[recording.recording_id],
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
                for entry in recording.entries
                if entry.performed or not self.drop_missing
            ],
            "has_error": self.drop_missing and recording.is_error,
        }


def not_done(data: DataSet, split: Split) -> int:
    """Count the steps of a split that were not done."""
    ids = set(chain.from_iterable(split.values()))
    recordings = [recording for recording in data.annotations.recordings if recording.recording_id in ids]
    return sum(not entry.performed for recording in recordings for entry in recording.entries)


def faults_of(data: DataSet, splits: Mapping[str, Split]) -> list[str]:
    """Return a line for each known fault in the published form of some splits."""
    lines = [
        f"{name}: {count} steps that were not done are at -1 s; --corrected leaves them out"
        for name, split in splits.items()
        if (count := not_done(data, split))
    ]
    with_errors = {recording.recording_id for recording in data.annotations.recordings if recording.is_error}
    listed = {recording_id for split in splits.values() for ids in split.values() for recording_id in ids}
    if hidden := len(with_errors & listed):
        lines.append(f"{hidden} recordings with errors are marked as having none; --corrected marks them")
    return lines

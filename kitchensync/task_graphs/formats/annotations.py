"""Annotations of CaptainCook4D: performed steps with their times and tagged errors.

The published files repeat the same entries (three JSON and two CSV files), in script order, with times of -1 for a
step that was not done. `Annotations` has each entry once; `annotation_files.py` writes all files from it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kitchensync.task_graphs.formats.strict_json import Reader, load

COMPLETE = "annotation_json/complete_step_annotations.json"
ERRORS = "annotation_json/error_annotations.json"
STEP_TEXTS = "annotation_json/step_idx_description.json"
CATEGORIES = "annotation_json/error_category_idx.json"
VIDEOS = "metadata/video_information.csv"
AVERAGES = "annotation_csv/average_segment_length.csv"
SPLITS = tuple(
    f"data_splits/{by}_data_split_{part}.json"
    for by in ("environment", "person", "recipes", "recordings")
    for part in ("combined", "normal")
)

ORDER_ERROR = "Order Error"
MISSING_STEP = "Missing Step"

MOST_SECONDS = 4_000_000_000
"""Largest accepted time: Unix times are below it, and in nanoseconds it fits into 64 bits."""
_NUMBER = re.compile(r"[0-9]{1,9}")

Seconds = float | int
"""Video time; an integer if the file has an integer, so that it is written back unchanged."""


@dataclass(frozen=True, slots=True)
class TaggedError:
    """One error that an annotator tagged."""

    tag: str
    description: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One step of a script; times are seconds of the video, -1.0 if it was not done."""

    step_id: int
    description: str
    start_s: Seconds
    end_s: Seconds
    errors: tuple[TaggedError, ...] = ()
    modified: str | None = None
    node: int | None = field(default=None, compare=False)
    "Node of the recipe's graph; None in published files, which lack it."

    @property
    def performed(self) -> bool:
        """Return whether the step was done."""
        return self.start_s >= 0

    def has_tag(self, tag: str) -> bool:
        """Return whether an annotator gave this tag."""
        return any(error.tag == tag for error in self.errors)


@dataclass(frozen=True, slots=True)
class AnnotatedRecording:
    """One recording: recipe, person, environment, and its entries in script order.

    `entries` are those of ERRORS; `agrees` is False if COMPLETE has other steps or times.
    """

    recording_id: str
    activity_id: int
    activity_name: str
    person_id: int
    environment: int
    entries: tuple[Entry, ...]
    agrees: bool = True

    @property
    def is_error(self) -> bool:
        """Return whether any entry has an error, as in the published files."""
        return any(entry.errors for entry in self.entries)

    @property
    def graph_stem(self) -> str:
        """Stem of the recipe's graph file: the activity name in lower case without spaces."""
        return self.activity_name.lower().replace(" ", "")


@dataclass(frozen=True)
class Annotations:
    """A folder of annotations; `videos`, `splits` and `averages` are kept unchanged.

    The published averages of two recipes cannot be recomputed (they were made from two segments fewer), so they are
    stored.
    """

    recordings: tuple[AnnotatedRecording, ...]
    step_texts: dict[int, str]
    categories: dict[str, int]
    videos: tuple[tuple[str, ...], ...] = ()
    splits: Mapping[str, dict[str, list[str]]] = field(default_factory=dict)
    averages: str | None = None

    @property
    def contradictions(self) -> list[str]:
        """Ids of the recordings whose files disagree."""
        return [recording.recording_id for recording in self.recordings if not recording.agrees]


def parse_annotations(texts: Mapping[str, str]) -> Annotations:
    """Parse the files of a folder: relative path -> text.

    COMPLETE, ERRORS and STEP_TEXTS are required. Raises BadGraph.
    """
    errors = _error_lists(texts[ERRORS])
    read = Reader(COMPLETE)
    recordings = []
    for recording_id, body in read.object(load(texts[COMPLETE], COMPLETE), "").items():
        if recording_id not in errors:
            raise read.fail(recording_id, f"not in {ERRORS}; both files must come from one release")
        recordings.append(_recording(read, recording_id, body, errors.pop(recording_id)))
    if errors:
        raise read.fail(next(iter(errors)), f"only in {ERRORS}; both files must come from one release")
    splits = {path: _split(texts[path], path) for path in SPLITS if path in texts}
    return Annotations(
        tuple(recordings),
        _step_texts(texts[STEP_TEXTS]),
        _categories(texts[CATEGORIES]) if CATEGORIES in texts else {},
        tuple(tuple(line.split(",")) for line in texts.get(VIDEOS, "").splitlines()),
        splits,
        texts.get(AVERAGES),
    )


def _categories(text: str) -> dict[str, int]:
    read = Reader(CATEGORIES)
    numbers = read.object(load(text, CATEGORIES), "")
    return {name: read.whole(number, name) for name, number in numbers.items()}


def _split(text: str, path: str) -> dict[str, list[str]]:
    read = Reader(path)
    parts = read.object(load(text, path), "")
    return {part: [read.text(id_, part) for id_ in read.array(ids, part)] for part, ids in parts.items()}


def _text(read: Reader, value: Any, place: str) -> str:
    """Return a text without NUL characters, which PostgreSQL cannot store."""
    if "\0" in (text := read.text(value, place)):
        raise read.fail(place, "contains a NUL character; remove it")
    return text


def _recording(read: Reader, recording_id: str, body: Any, entries: list[Entry]) -> AnnotatedRecording:
    body = read.object(body, recording_id)
    steps = [
        read.object(step, f"{recording_id}: steps")
        for step in read.array(body.get("steps"), f"{recording_id}: steps")
    ]
    keys = ("step_id", "description", "start_time", "end_time")
    repeated = [tuple(step.get(key) for key in keys) for step in steps]
    agrees = repeated == [(e.step_id, e.description, e.start_s, e.end_s) for e in entries]
    return AnnotatedRecording(
        recording_id,
        read.whole(body.get("activity_id"), f"{recording_id}: activity_id"),
        _text(read, body.get("activity_name"), f"{recording_id}: activity_name"),
        read.whole(body.get("person_id"), f"{recording_id}: person_id"),
        read.whole(body.get("environment"), f"{recording_id}: environment"),
        tuple(entries),
        agrees,
    )


def _error_lists(text: str) -> dict[str, list[Entry]]:
    read = Reader(ERRORS)
    entries: dict[str, list[Entry]] = {}
    for number, body in enumerate(read.array(load(text, ERRORS), "")):
        body = read.object(body, f"[{number}]")
        recording_id = _text(read, body.get("recording_id"), f"[{number}]: recording_id")
        steps = read.array(body.get("step_annotations"), f"{recording_id}: step_annotations")
        entries[recording_id] = [_entry(read, step, f"{recording_id}[{n}]") for n, step in enumerate(steps)]
    return entries


def _entry(read: Reader, step: Any, place: str) -> Entry:
    step = read.object(step, place)
    keys = {"description", "step_id", "errors", "start_time", "end_time", "modified_description"}
    read.known_keys(step, keys, place)
    modified = step.get("modified_description")
    errors = [read.object(error, place) for error in read.array(step.get("errors", []), place)]
    return Entry(
        read.whole(step.get("step_id"), f"{place}: step_id"),
        _text(read, step.get("description"), f"{place}: description"),
        _seconds(read, step.get("start_time"), f"{place}: start_time"),
        _seconds(read, step.get("end_time"), f"{place}: end_time"),
        tuple(
            TaggedError(_text(read, e.get("tag"), place), _text(read, e.get("description"), place))
            for e in errors
        ),
        None if modified is None else _text(read, modified, f"{place}: modified_description"),
    )


def _seconds(read: Reader, value: Any, place: str) -> Seconds:
    if type(value) not in (int, float) or not abs(value) <= MOST_SECONDS:  # this way round it refuses NaN too
        raise read.fail(place, f"not a number of seconds, at most {MOST_SECONDS}")
    seconds: Seconds = value
    return seconds


def _step_texts(text: str) -> dict[int, str]:
    read = Reader(STEP_TEXTS)
    texts = read.object(load(text, STEP_TEXTS), "")
    return {
        read.whole(int(key) if _NUMBER.fullmatch(key) else key, key): _text(read, texts[key], key)
        for key in texts
    }

"""Steps of recordings as rows, clips and questions, with their times and errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypedDict

from kitchensync.dataset.source.data_set_folder import DataSet
from kitchensync.task_graphs.categories import CATEGORIES, TAG_OF_COLUMN
from kitchensync.task_graphs.formats.annotations import AnnotatedRecording, Entry, Seconds
from kitchensync.task_graphs.model import Step
from kitchensync.task_graphs.text.spans import pieces

COLUMNS = ("recording", "entry", "step_id", "start", "end", "error", *TAG_OF_COLUMN, "node", "text")


def step_rows(recording: AnnotatedRecording) -> Iterator[tuple[object, ...]]:
    """Yield a row for each entry in script order; start and end are -1.0 if the step was not done."""
    for place, entry in enumerate(recording.entries):
        times = float(entry.start_s), float(entry.end_s)
        flags = (int(entry.has_tag(tag)) for tag in TAG_OF_COLUMN.values())
        errors = int(bool(entry.errors)), *flags
        yield recording.recording_id, place, entry.step_id, *times, *errors, entry.node, instruction(entry)


def done_in_order(recording: AnnotatedRecording) -> list[Entry]:
    """Return the performed steps by start, end and place in the script."""
    done = (entry for entry in recording.entries if entry.performed)
    return sorted(done, key=lambda entry: (entry.start_s, entry.end_s))


class KeyStep(TypedDict):
    """A performed step, with its times in seconds of the video."""

    step_id: int
    node: int | None
    text: str
    start: Seconds
    end: Seconds


class KeySteps(TypedDict):
    """The performed steps of a recording, in order of time."""

    recording: str
    activity_id: int
    activity_name: str
    keysteps: list[KeyStep]


def key_steps(recording: AnnotatedRecording) -> KeySteps:
    """Return the performed steps of a recording, in order of time."""
    return {
        "recording": recording.recording_id,
        "activity_id": recording.activity_id,
        "activity_name": recording.activity_name,
        "keysteps": [
            {
                "step_id": entry.step_id,
                "node": entry.node,
                "text": instruction(entry),
                "start": entry.start_s,
                "end": entry.end_s,
            }
            for entry in done_in_order(recording)
        ],
    }


def instruction(entry: Entry) -> str:
    """Return the instruction of a step, without the action word in front."""
    return Step(entry.step_id, entry.description).instruction


LONG_S = 120.0
SIZES = (2, 3, 4, 5)
"""Default numbers of steps in a clip."""


class ErrorText(TypedDict):
    """An error of a step: published category and description."""

    tag: str
    description: str


class StepsClip(TypedDict):
    """A clip of consecutive steps; times in seconds of the video; lists have one element per step.

    `objects` are the ingredients and tools in the texts, each once.
    """

    id: str
    recording: str
    start: Seconds
    end: Seconds
    step_ids: list[int]
    nodes: list[int | None]
    texts: list[str]
    spans: list[list[Seconds]]
    errors: list[list[ErrorText]]
    objects: list[list[str]]


def windows(recording: AnnotatedRecording, size: int) -> Iterator[StepsClip]:
    """Yield the clips of `size` steps of a recording."""
    done = done_in_order(recording)
    for first in range(len(done) - size + 1):
        steps = done[first : first + size]
        objects = [
            [name.lower() for kind in ("ingredient", "tool") for name in pieces(step.description, kind)]
            for step in steps
        ]
        yield {
            "id": f"{recording.recording_id}_{first}_{size}",
            "recording": recording.recording_id,
            "start": steps[0].start_s,
            "end": max(step.end_s for step in steps),
            "step_ids": [step.step_id for step in steps],
            "nodes": [step.node for step in steps],
            "texts": [step.description for step in steps],
            "spans": [[step.start_s, step.end_s] for step in steps],
            "errors": [texts_of(step) for step in steps],
            "objects": [list(dict.fromkeys(names)) for names in objects],
        }


def texts_of(step: Entry) -> list[ErrorText]:
    """Return the errors of an entry as rows."""
    return [{"tag": error.tag, "description": error.description} for error in step.errors]


class ClipCounts(TypedDict):
    """Number of clips."""

    clips: int
    seconds: float
    "In total."
    over_120_s: int
    "Clips longer than two minutes."


def count_clips(clips: list[StepsClip]) -> ClipCounts:
    """Return the number of clips, their total seconds, and the number longer than two minutes."""
    lengths = [clip["end"] - clip["start"] for clip in clips]
    long = sum(length > LONG_S for length in lengths)
    return {"clips": len(clips), "seconds": round(sum(lengths), 3), "over_120_s": long}


STEP = "Did the person perform the step {step} from the recipe {recipe}?"
CATEGORY = "In the step {step} from the recipe {recipe}, did the person {about}?"


class Prompt(TypedDict):
    """A question about a step, with its right answer; without times it is about the whole video."""

    recording: str
    entry: int
    step_id: int
    node: int | None
    text: str
    start: Seconds | None
    end: Seconds | None
    kind: str
    question: str
    answer: str


def prompts(recording: AnnotatedRecording, *, categories: bool) -> Iterator[Prompt]:
    """Yield one question per step, or seven about categories: a step has an error if one answer is Yes.

    `start` and `end` are None if the step was not done: the question is then about the whole video.
    """
    for place, entry in enumerate(recording.entries):
        fields = {"step": instruction(entry), "recipe": recording.activity_name}
        questions = [("step", STEP.format(**fields), entry.performed and not entry.errors)]
        if categories:
            questions = [
                (kind.column, CATEGORY.format(**fields, about=kind.deed), entry.has_tag(kind.tag))
                for kind in CATEGORIES
                if kind.column
            ]
        for kind, question, answer in questions:
            yield {
                "recording": recording.recording_id,
                "entry": place,
                "step_id": entry.step_id,
                "node": entry.node,
                "text": fields["step"],
                "start": entry.start_s if entry.performed else None,
                "end": entry.end_s if entry.performed else None,
                "kind": kind,
                "question": question,
                "answer": "Yes" if answer else "No",
            }


ROUNDING_S = 0.01
"""Resolution of video lengths in the tables, seconds."""


def past_the_film(data: DataSet) -> list[str]:
    """Return a warning about steps that end after their video, if any."""
    late = [
        f"{recording.recording_id} step {entry.step_id}"
        for recording in data.annotations.recordings
        for entry in recording.entries
        if entry.end_s > data.lengths_s.get(recording.recording_id, float("inf")) + ROUNDING_S
    ]
    return [f"{len(late)} steps end after their video: {', '.join(late[:3])}"] if late else []

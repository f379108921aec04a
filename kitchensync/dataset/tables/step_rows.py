"""Steps of recordings as rows, clips and questions: when each was done, and which errors it has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypedDict

from kitchensync.dataset.source.data_set_folder import DataSet
from kitchensync.task_graphs.categories import CATEGORIES, TAG_OF_COLUMN
from kitchensync.task_graphs.formats.annotations import AnnotatedRecording, Entry, Seconds
from kitchensync.task_graphs.model import Step
from kitchensync.task_graphs.text.spans import pieces

COLUMNS = ("recording", "entry", "step_id", "start", "end", "error", *TAG_OF_COLUMN, "node", "text")


def step_rows(one: AnnotatedRecording) -> Iterator[tuple[object, ...]]:
    """Yield a row for each entry in script order; start and end are -1.0 where the step was not done."""
    for place, entry in enumerate(one.entries):
        flags = (int(entry.has_tag(tag)) for tag in TAG_OF_COLUMN.values())
        times = float(entry.start_s), float(entry.end_s)
        about = entry.step_id, *times, int(bool(entry.errors)), *flags, entry.node, instruction(entry)
        yield one.recording_id, place, *about


def done_in_order(one: AnnotatedRecording) -> list[Entry]:
    """Return the steps that were done by start, end and place in the script."""
    done = (entry for entry in one.entries if entry.performed)
    return sorted(done, key=lambda entry: (entry.start_s, entry.end_s))


class KeyStep(TypedDict):
    """A step that was done, with its times in seconds of the film."""

    step_id: int
    node: int | None
    text: str
    start: Seconds
    end: Seconds


class KeySteps(TypedDict):
    """The steps of a recording in the order in which they were done."""

    recording: str
    activity_id: int
    activity_name: str
    keysteps: list[KeyStep]


def key_steps(one: AnnotatedRecording) -> KeySteps:
    """Return the steps of a recording in the order in which they were done, with times."""
    return {
        "recording": one.recording_id,
        "activity_id": one.activity_id,
        "activity_name": one.activity_name,
        "keysteps": [
            {
                "step_id": entry.step_id,
                "node": entry.node,
                "text": instruction(entry),
                "start": entry.start_s,
                "end": entry.end_s,
            }
            for entry in done_in_order(one)
        ],
    }


def instruction(entry: Entry) -> str:
    """Return what a step asks for, without the action word in front."""
    return Step(entry.step_id, entry.description).instruction


LONG_S = 120.0
SIZES = (2, 3, 4, 5)
"""How many steps in a row are a clip."""


class ErrorText(TypedDict):
    """An error of a step: its published category, and what was done instead."""

    tag: str
    description: str


class StepsClip(TypedDict):
    """A clip of some steps in a row; seconds of the film; lists have one element a step.

    `objects` are the ingredients and tools that the texts name, each once.
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


def windows(one: AnnotatedRecording, size: int) -> Iterator[StepsClip]:
    """Yield the clips of `size` steps of a recording."""
    done = done_in_order(one)
    for first in range(len(done) - size + 1):
        steps = done[first : first + size]
        yield {
            "id": f"{one.recording_id}_{first}_{size}",
            "recording": one.recording_id,
            "start": steps[0].start_s,
            "end": max(step.end_s for step in steps),
            "step_ids": [step.step_id for step in steps],
            "nodes": [step.node for step in steps],
            "texts": [step.description for step in steps],
            "spans": [[step.start_s, step.end_s] for step in steps],
            "errors": [texts_of(step) for step in steps],
            "objects": [
                list(
                    dict.fromkeys(
                        name.lower()
                        for kind in ("ingredient", "tool")
                        for name in pieces(step.description, kind)
                    )
                )
                for step in steps
            ],
        }


def texts_of(step: Entry) -> list[ErrorText]:
    """Return the errors of an entry as rows hold them."""
    return [{"tag": error.tag, "description": error.description} for error in step.errors]


def counted(found: list[StepsClip]) -> dict[str, float]:
    """Return how many clips there are, their seconds together, and how many are longer than two minutes."""
    lengths = [window["end"] - window["start"] for window in found]
    long = sum(length > LONG_S for length in lengths)
    return {"clips": len(found), "seconds": round(sum(lengths), 3), "over_120_s": long}


STEP = "Did the person perform the step {step} from the recipe {recipe}?"
CATEGORY = "In the step {step} from the recipe {recipe}, did the person {about}?"


class Prompt(TypedDict):
    """A question about a step, with its right answer; without times it is about the whole film."""

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


def prompts(one: AnnotatedRecording, *, categories: bool) -> Iterator[Prompt]:
    """Yield one question a step, or the seven about categories: a step has an error where one answer is Yes.

    `start` and `end` are None where the step was not done: the question is then about the whole film.
    """
    for place, entry in enumerate(one.entries):
        words = {"step": instruction(entry), "recipe": one.activity_name}
        asked = [("step", STEP.format(**words), entry.performed and not entry.errors)]
        if categories:
            asked = [
                (kind.column, CATEGORY.format(**words, about=kind.deed), entry.has_tag(kind.tag))
                for kind in CATEGORIES
                if kind.column
            ]
        for kind, question, answer in asked:
            yield {
                "recording": one.recording_id,
                "entry": place,
                "step_id": entry.step_id,
                "node": entry.node,
                "text": words["step"],
                "start": entry.start_s if entry.performed else None,
                "end": entry.end_s if entry.performed else None,
                "kind": kind,
                "question": question,
                "answer": "Yes" if answer else "No",
            }


ROUNDING_S = 0.01
"""Lengths of films are kept with two decimals."""


def past_the_film(data: DataSet) -> list[str]:
    """Return a line about the steps that end after their film, none where all lie inside."""
    late = [
        f"{one.recording_id} step {entry.step_id}"
        for one in data.annotations.recordings
        for entry in one.entries
        if entry.end_s > data.lengths_s.get(one.recording_id, float("inf")) + ROUNDING_S
    ]
    return [f"{len(late)} steps end after their film: {', '.join(late[:3])}"] if late else []

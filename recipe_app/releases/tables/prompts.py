"""Questions to a model that sees the film: was a step performed, and was an error of each category made in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from recipe_app.graphs.formats.annotations import AnnotatedRecording, Entry
from recipe_app.releases.tables.step_rows import CATEGORIES, instruction

STEP = "Did the person perform the step {step} from the recipe {recipe}?"
ABOUT = {
    "preparation": "make a preparation error (a wrong, soiled or wrongly prepared ingredient or tool)",
    "measurement": "make a measurement error (a wrong amount)",
    "order": "make an order error (the step was done before or after its turn)",
    "timing": "make a timing error (too long or too short)",
    "technique": "make a technique error (the step was carried out in a wrong way)",
    "temperature": "make a temperature error (a wrong level of heat or power)",
    "missing": "leave out all or a part of it",
}
CATEGORY = "In the step {step} from the recipe {recipe}, did the person {about}?"


def prompts(one: AnnotatedRecording, *, categories: bool) -> Iterator[dict[str, Any]]:
    """Yield one question a step, or the seven about categories: a step has an error where one answer is Yes.

    `start` and `end` are None where the step was not done: the question is then about the whole film.
    """
    for place, entry in enumerate(one.entries):
        for kind, question, answer in _asked(entry, one.activity_name, categories):
            yield {
                "recording": one.recording_id,
                "entry": place,
                "step_id": entry.step_id,
                "start": entry.start_s if entry.performed else None,
                "end": entry.end_s if entry.performed else None,
                "kind": kind,
                "question": question,
                "answer": "Yes" if answer else "No",
            }


def _asked(entry: Entry, recipe: str, categories: bool) -> Iterator[tuple[str, str, bool]]:
    words = {"step": instruction(entry), "recipe": recipe}
    if not categories:
        yield "step", STEP.format(**words), entry.performed and not entry.errors
        return
    for kind, tag in CATEGORIES.items():
        yield kind, CATEGORY.format(**words, about=ABOUT[kind]), entry.has_tag(tag)

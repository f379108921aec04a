"""One row a step of a recording: when it was done, whether it has an error, and of which categories."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from recipe_app.graphs.formats.annotations import AnnotatedRecording, Entry
from recipe_app.graphs.model import Step

CATEGORIES = {
    "preparation": "Preparation Error",
    "measurement": "Measurement Error",
    "order": "Order Error",
    "timing": "Timing Error",
    "technique": "Technique Error",
    "temperature": "Temperature Error",
    "missing": "Missing Step",
}
"""Column -> tag; an error that is tagged Other alone has none of them."""
COLUMNS = ("recording", "entry", "step_id", "start", "end", "error", *CATEGORIES)


def step_rows(one: AnnotatedRecording) -> Iterator[tuple[object, ...]]:
    """Yield a row for each entry in script order; start and end are -1.0 where the step was not done."""
    for place, entry in enumerate(one.entries):
        flags = (int(entry.has_tag(tag)) for tag in CATEGORIES.values())
        times = float(entry.start_s), float(entry.end_s)
        yield one.recording_id, place, entry.step_id, *times, int(bool(entry.errors)), *flags


def done_in_order(one: AnnotatedRecording) -> list[Entry]:
    """Return the steps that were done by start, end and place in the script."""
    done = (entry for entry in one.entries if entry.performed)
    return sorted(done, key=lambda entry: (entry.start_s, entry.end_s))


def key_steps(one: AnnotatedRecording) -> dict[str, Any]:
    """Return the steps of a recording in the order in which they were done, with times."""
    return {
        "recording": one.recording_id,
        "activity_id": one.activity_id,
        "activity_name": one.activity_name,
        "keysteps": [
            {"step_id": entry.step_id, "text": instruction(entry), "start": entry.start_s, "end": entry.end_s}
            for entry in done_in_order(one)
        ],
    }


def instruction(entry: Entry) -> str:
    """Return what a step asks for, without the action word in front."""
    return Step(entry.step_id, entry.description).instruction

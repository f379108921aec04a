"""Clips of some steps in a row: what questions about objects over time are asked of.

The steps that were done are in order of time; a clip begins with its first step and ends with the last end among its
steps, for steps may overlap. The next clip of a size begins one step later.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from recipe_app.graphs.formats.annotations import AnnotatedRecording, Entry
from recipe_app.graphs.text.spans import pieces
from recipe_app.releases.tables.step_rows import done_in_order

LONG_S = 120.0
Window = dict[str, Any]


def windows(one: AnnotatedRecording, size: int) -> Iterator[Window]:
    """Yield the clips of `size` steps of a recording; `errors` and `objects` are lists, one a step."""
    done = done_in_order(one)
    for first in range(len(done) - size + 1):
        steps = done[first : first + size]
        yield {
            "id": f"{one.recording_id}_{first}_{size}",
            "recording": one.recording_id,
            "start": steps[0].start_s,
            "end": max(step.end_s for step in steps),
            "step_ids": [step.step_id for step in steps],
            "texts": [step.description for step in steps],
            "errors": [_errors(step) for step in steps],
            "objects": [_objects(step) for step in steps],
        }


def _errors(step: Entry) -> list[dict[str, str]]:
    return [{"tag": error.tag, "description": error.description} for error in step.errors]


def _objects(step: Entry) -> list[str]:
    """Return the ingredients and tools that a step names, by the rules for texts of recipes; each once."""
    named = (*pieces(step.description, "ingredient"), *pieces(step.description, "tool"))
    return list(dict.fromkeys(name.lower() for name in named))


def counted(found: list[Window]) -> dict[str, Any]:
    """Return how many clips there are, their seconds together, and how many are longer than two minutes."""
    lengths = [window["end"] - window["start"] for window in found]
    long = sum(length > LONG_S for length in lengths)
    return {"clips": len(found), "seconds": round(sum(lengths), 3), "over_120_s": long}

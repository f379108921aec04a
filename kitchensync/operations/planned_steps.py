"""What the plan of a recording makes of its recipe: the words at each step, their order, what is left out.

`static/core/plan.js` does the same on the tablet; a test compares them. Whoever shows a step while somebody cooks, or
prints it, shows `words`: the planned text of the step, or its own, and what else is planned there in brackets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from kitchensync.operations.session_state import ErrorState, State

ORDER, MISSING = 2, 6


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A step as it is shown: `language` is that of its words, `is_planned` whether the plan changed them."""

    words: str
    language: str
    is_planned: bool


@dataclass(frozen=True, slots=True)
class PlannedSteps:
    """Steps by id: those that are shown, in their order, and those that are left out, ascending."""

    order: tuple[int, ...]
    left_out: tuple[int, ...]
    steps: dict[int, PlannedStep]


def plan_of(state: State) -> PlannedSteps:
    """Return what a reduced log plans; the last planned text of a step is the one that is shown."""
    recording = state["recording"]
    errors = [error for error in state["errors"].values() if error["planned"] and not error["removed"]]
    own = [error for error in errors if error.get("origin") != "script"]
    order = [int(node) for node in recording["order"]]
    for error in own:  # a step that is planned too early stands in front of the one that it was to wait for
        node, before = error["node"], error.get("before")
        if node is None or before is None or node == before or ORDER not in error["categories"]:
            continue
        if {node, before} <= set(order):
            order.remove(node)
            order.insert(order.index(before), node)
    left = {error["node"] for error in own if MISSING in error["categories"]}
    order = [node for node in order if node not in left]
    steps = {
        int(node): _step(
            step["text"], recording.get("language", ""), [e for e in own if e["node"] == int(node)]
        )
        for node, step in recording["steps"].items()
    }
    return PlannedSteps(tuple(order), tuple(node for node in sorted(steps) if node not in order), steps)


def numbered_steps(state: State, plan: PlannedSteps) -> dict[int, int | None]:
    """Return the number of each step as it was shown, None where it was left out; in the order cooked.

    Steps that nobody began come last, in the order of the plan.
    """
    begun = {
        int(node): min(run["start"] or run["end"] or 0 for run in step["runs"])
        for node, step in state["steps"].items()
        if step["runs"]
    }
    nodes = sorted((*plan.order, *plan.left_out), key=lambda node: begun.get(node, math.inf))
    return {node: plan.order.index(node) + 1 if node in plan.order else None for node in nodes}


def _step(text: str, language: str, errors: list[ErrorState]) -> PlannedStep:
    worded = next((error for error in reversed(errors) if error.get("text")), None)
    notes = [note for error in errors if error is not worded and (note := _note(error))]
    words = worded["text"] if worded else text
    spoken = (worded.get("language") or language) if worded else language
    return PlannedStep(f"{words} ({'; '.join(notes)})" if notes else words, spoken, bool(worded or notes))


def _note(error: ErrorState) -> str:
    """What is planned and not shown otherwise: by the order of the steps, or by leaving one out."""
    shown = {MISSING} if error.get("before") in (None, error["node"]) else {MISSING, ORDER}
    if error["categories"] and set(error["categories"]) <= shown:
        return ""
    return str(error["description"] or error.get("text") or "")

"""Apply the plan of a recording to its recipe: texts and order of the steps, and steps that are left out.

`static/core/plan.js` does the same on the tablet; a test compares them. Steps are shown and printed by `words`: the
planned text of the step, else its own, with other plans for the step in brackets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from kitchensync.operations.session_state import ErrorState, State

ORDER, MISSING = 2, 6


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A step as it is shown; `language` is that of its words, `is_planned` whether the plan changed them."""

    words: str
    language: str
    is_planned: bool


@dataclass(frozen=True, slots=True)
class PlannedSteps:
    """Steps by id, with the ids of the shown steps in order and of the left-out steps, ascending."""

    order: tuple[int, ...]
    left_out: tuple[int, ...]
    steps: dict[int, PlannedStep]


def plan_of(state: State) -> PlannedSteps:
    """Return the plan in a reduced log; the last planned text of a step counts."""
    recording = state["recording"]
    errors = [error for error in state["errors"].values() if error["planned"] and not error["removed"]]
    own = [error for error in errors if error.get("origin") != "script"]
    order = [int(node) for node in recording["order"]]
    for error in own:  # an error of order moves its step in front of the step `before`
        node, before = error["node"], error.get("before")
        if node is None or before is None or node == before or ORDER not in error["categories"]:
            continue
        if {node, before} <= set(order):
            order.remove(node)
            order.insert(order.index(before), node)
    left_out = {error["node"] for error in own if MISSING in error["categories"]}
    order = [node for node in order if node not in left_out]
    steps = {
        int(node): _step(
            step["text"],
            recording.get("language", ""),
            [error for error in own if error["node"] == int(node)],
        )
        for node, step in recording["steps"].items()
    }
    return PlannedSteps(tuple(order), tuple(node for node in sorted(steps) if node not in order), steps)


def numbered_steps(state: State, plan: PlannedSteps) -> dict[int, int | None]:
    """Return the shown number of each step, None for left-out steps, in the order in which they were started.

    Steps that were not started come last, in the order of the plan.
    """
    begun = {
        int(node): min(run["start"] or run["end"] or 0 for run in step["runs"])
        for node, step in state["steps"].items()
        if step["runs"]
    }
    nodes = sorted((*plan.order, *plan.left_out), key=lambda node: begun.get(node, math.inf))
    return {node: plan.order.index(node) + 1 if node in plan.order else None for node in nodes}


def _step(text: str, language: str, errors: list[ErrorState]) -> PlannedStep:
    planned = next((error for error in reversed(errors) if error.get("text")), None)
    notes = [note for error in errors if error is not planned and (note := _note(error))]
    if planned:
        text, language = planned["text"], planned.get("language") or language
    return PlannedStep(f"{text} ({'; '.join(notes)})" if notes else text, language, bool(planned or notes))


def _note(error: ErrorState) -> str:
    """Return the text of a plan that is not visible from the order of the steps or a left-out step, else ""."""
    shown = {MISSING} if error.get("before") in (None, error["node"]) else {MISSING, ORDER}
    if error["categories"] and set(error["categories"]) <= shown:
        return ""
    return str(error["description"] or error.get("text") or "")

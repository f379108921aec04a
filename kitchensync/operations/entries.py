"""Convert a reduced log into entries of the published annotation format, with times of the video.

Facts that the format has no field for are in `EntryNotes`, which become lines of `kitchensync.jsonl`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from kitchensync.operations.planned_steps import plan_of
from kitchensync.operations.session_state import ErrorState, Frozen, Run, State
from kitchensync.storage.recording_files.annotation_folder import AcceptedSteps
from kitchensync.storage.timeline.film_times import FilmPlace
from kitchensync.task_graphs.categories import TAGS
from kitchensync.task_graphs.formats.annotations import Entry, TaggedError

NOT_DONE_S = -1.0
Times = tuple[float, float, dict[str, Any], tuple[int, int] | None]
NOT_DONE: Times = (NOT_DONE_S, NOT_DONE_S, {"done": False}, None)

PlaceOf = Callable[[int], FilmPlace]
"""Returns the position in the video of a time on the capture clock (`host_ns`)."""


@dataclass(frozen=True, slots=True)
class EntryNotes:
    """One entry, with additional facts in `beside`."""

    entry: Entry
    node: int
    beside: dict[str, Any] = field(default_factory=dict)
    taken_ns: tuple[int, int] | None = None
    "Touched start and end on the capture clock, also outside of the video; the start is 0 if it was not touched."


def entries_of(
    state: State, place_of: PlaceOf, step_id: Callable[[str], int], accepted: AcceptedSteps | None = None
) -> list[EntryNotes]:
    """Return the entries of a recording's reduced log in the order of the script; a step done twice has two entries.

    Times are the accepted marks of an annotator if there are any, else those of the touches.
    """
    frozen = state["recording"]
    nodes = [int(node) for node in frozen["order"]]
    nodes += sorted(int(node) for node in frozen["steps"] if int(node) not in nodes)
    # A run without a touched start began when the previous step ended, or when cooking began.
    ends = sorted(run["end"] for step in state["steps"].values() for run in step["runs"] if run["end"])
    starts, plan = dict(zip(ends[1:], ends, strict=False)), plan_of(state)
    entries = []
    for node in nodes:
        label = frozen["steps"][str(node)]["label"]
        errors = [error for error in state["errors"].values() if error["node"] == node]
        runs = state["steps"][str(node)]["runs"] if str(node) in state["steps"] else []
        times = list(_times(runs, starts, place_of) if accepted is None else _marked(node, accepted))
        for number, (start_s, end_s, beside, taken_ns) in enumerate(times or [NOT_DONE]):
            made = [error for error in errors if counts(error)] if number == 0 else []
            modified = next(filter(None, (done_instead(error, frozen) for error in made)), None)
            entry = Entry(step_id(label), label, start_s, end_s, tuple(tagged(made)), modified, node)
            more = {"errors": [_error(error) for error in errors]} if number == 0 and errors else {}
            sides: dict[str, str | None] = {}  # the texts of recipe and plan, if they differ
            if node in plan.left_out or plan.steps[node].is_planned:
                planned = None if node in plan.left_out else plan.steps[node].words
                sides = {"original": frozen["steps"][str(node)]["text"], "planned": planned}
            entries.append(EntryNotes(entry, node, {**beside, **sides, **more}, taken_ns))
    return entries


def done_instead(error: ErrorState, frozen: Frozen) -> str | None:
    """Return the text of what was done instead of a step; None if it is not given or equals the recipe."""
    text = str(error["text"]).strip()
    step = frozen["steps"].get(str(error["node"]))
    return text if text and (not step or text.casefold() != step["text"].strip().casefold()) else None


def counts(error: ErrorState) -> bool:
    """Return whether an error was made, by its verdict, else by the log; a removed error does not count."""
    if error["removed"] or not error["categories"]:
        return False
    verdict = error.get("judged", {}).get("verdict")
    return verdict == "happened" or (verdict != "did_not_happen" and error["outcome"] != "not_done")


def tagged(errors: list[ErrorState]) -> Iterator[TaggedError]:
    """Yield the errors of a reduced log in the published format: one for each category."""
    for error in errors:
        for category in error["categories"]:
            instead = f"{error['actual'] or '?'} instead of {error['expected'] or '?'}"
            fallback = instead if error["expected"] or error["actual"] else error["text"]
            yield TaggedError(TAGS[category], error["description"] or fallback)


def _error(error: ErrorState) -> dict[str, Any]:
    keys = ("error_id", "planned", "origin", "categories", "subtype", "outcome", "outcome_note", "removed")
    fields = cast("dict[str, Any]", error)
    return {key: fields[key] for key in (*keys, "recovery", "judged") if key in fields}


def _marked(node: int, accepted: AcceptedSteps) -> Iterator[Times]:
    """Yield the times of a step that an annotator marked, accurate to one frame."""
    beside = {"done": True, "start": "annotation", "bound_s": round(float(1 / accepted.fps), 4)}
    for start_s, end_s in accepted.spans_s(node):
        yield round(start_s, 3), round(end_s, 3), dict(beside), None


def _times(runs: list[Run], starts: dict[int, int], place_of: PlaceOf) -> Iterator[Times]:
    for run in runs:
        if run["end"] is None:
            continue  # started but not completed
        touched = run["start"] is not None
        start_ns = run["start"] if touched else starts.get(run["end"])
        end = place_of(run["end"])
        start = place_of(start_ns) if start_ns is not None else FilmPlace(0.0, end.bound_s)
        beside: dict[str, Any] = {"done": True, "start": "touch" if touched else "end of the step before"}
        if "shown" in run:
            beside["shown"] = run["shown"]
        beside["bound_s"] = round(max(start.bound_s, end.bound_s), 4)
        if outside := {name: p.outside for name, p in (("start", start), ("end", end)) if p.outside}:
            beside["outside"] = outside
        yield start.film_s, end.film_s, beside, (start_ns or 0, run["end"])

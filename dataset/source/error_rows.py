"""Errors of a recording as rows: what went wrong and when, on purpose or not, who noticed it, what corrected it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypedDict

from kitchensync.dataset.operations.reduce import standing
from kitchensync.dataset.operations.step_runs import Op, State
from kitchensync.dataset.source.entries import TAGS, counts
from kitchensync.storage.timeline.film_times import FilmPlace

INTENTS = ("on_purpose", "by_accident")
NOTICED = {
    "at_once": "by_the_cook",
    "later": "by_the_cook",
    "somebody_else": "by_somebody_else",
    "by_others": "by_somebody_else",
    "not": "not",
}
"""Values that logs and rulings hold -> the vocabulary of tables and exports; all others are missing."""
NO_STEP = -1
"""What the log holds where nothing corrected an error."""
ENTERED, RULED = "entered", "ruled"


class ErrorRow(TypedDict):
    """One error; None where a value is not known. Seconds are of the session, or of the film in a data set.

    `step` is the label of the step at `node`. `reported_s` is when the tablet was touched, `at_s` when it happened,
    where somebody set that; `bound_s` is how far `at_s` may be off. `corrected_by` is an error_id, the node of a step
    as text, or `none`. `source` says whether the cook entered it or people ruled on it.
    """

    recording: str
    error_id: str
    step: str | None
    node: int | None
    categories: list[str]
    description: str | None
    planned: bool
    intent: str | None
    noticed: str | None
    at_s: float | None
    end_s: float | None
    point_of_no_return_s: float | None
    noticed_s: float | None
    corrected_by: str | None
    corrected_s: float | None
    reported_s: float | None
    source: str
    bound_s: float | None


ERROR_COLUMNS = tuple(ErrorRow.__annotations__)
PlaceOf = Callable[[int], FilmPlace]


def error_rows(recording: str, state: State, ops: Iterable[Op], place_of: PlaceOf) -> list[ErrorRow]:
    """Return a row for each error that was made, in order of time.

    `recording` is its id, `state` the reduced log with what people ruled.
    """
    reported_ns = _reported_ns(ops)
    frozen = state["recording"]
    rows = [
        _row(recording, error, frozen["steps"], reported_ns.get(error["error_id"]), place_of)
        for error in state["errors"].values()
        if counts(error)
    ]
    return sorted(rows, key=lambda row: (time_of(row), row["error_id"]))


def details_of(row: ErrorRow) -> dict[str, Any]:
    """Return what is known of an error beside its place in the recipe and its categories."""
    others = ("recording", "error_id", "step", "node", "categories", "planned")
    return {name: value for name, value in row.items() if name not in others and value is not None}


def time_of(row: ErrorRow) -> float:
    """Return when an error happened, else when it was reported; infinity where neither is known."""
    known = (seconds for seconds in (row["at_s"], row["reported_s"]) if seconds is not None)
    return next(known, math.inf)


def _reported_ns(ops: Iterable[Op]) -> dict[str, int]:
    """Return when each error was entered while cooking or in the review, on the capture clock."""
    found: dict[str, int] = {}
    for op in standing(ops):
        if op["kind"] in ("error", "add_error"):
            found.setdefault(op["body"]["error_id"], op["host_ns"])
    return found


def _row(
    recording: str,
    error: Mapping[str, Any],
    steps: Mapping[str, Any],
    reported_ns: int | None,
    place_of: PlaceOf,
) -> ErrorRow:
    ruled = error.get("judged") or {}
    at_ns = (
        error["at"] if error["at"] != reported_ns else None
    )  # the touch is no statement of when it happened
    at = None if at_ns is None else place_of(at_ns)
    node = error["node"]

    def seconds(host_ns: int | None) -> float | None:
        place = None if host_ns is None else place_of(host_ns)
        return None if place is None or place.outside else round(place.film_s, 3)

    return {
        "recording": recording,
        "error_id": error["error_id"],
        "step": steps[str(node)]["label"] if str(node) in steps else None,
        "node": node,
        "categories": [TAGS[category] for category in error["categories"]],
        "description": error["description"] or None,
        "planned": error["planned"],
        "intent": _one_of(INTENTS, ruled.get("intent", error["intent"])),
        "noticed": NOTICED.get(ruled.get("noticed", error["noticed"])),
        "at_s": seconds(at_ns),
        "end_s": seconds(error.get("end")),
        "point_of_no_return_s": seconds(error.get("point_of_no_return")),
        "noticed_s": seconds(error.get("noticed_at")),
        "corrected_by": _corrected_by(error["corrected_by"]),
        "corrected_s": seconds(error.get("corrected_at")),
        "reported_s": seconds(reported_ns),
        "source": RULED if ruled else ENTERED,
        "bound_s": None if at is None or at.outside else round(at.bound_s, 4),
    }


def _one_of(values: Iterable[str], value: str) -> str | None:
    return value if value in values else None


def _corrected_by(value: int | str | None) -> str | None:
    return "none" if value == NO_STEP else None if value is None else str(value)

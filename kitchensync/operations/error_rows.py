"""Errors of a recording as rows of a table: what and when, intent, who noticed it, and the correction."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypedDict, cast

from kitchensync.operations.entries import counts
from kitchensync.operations.reduce import standing
from kitchensync.operations.session_state import ErrorState, FrozenStep, Op, State
from kitchensync.storage.recording_files.annotation_forms import MOMENTS
from kitchensync.storage.timeline.film_times import FilmPlace
from kitchensync.task_graphs.categories import TAGS

INTENTS = ("on_purpose", "by_accident")
NOTICED = {
    "at_once": "by_the_cook",
    "later": "by_the_cook",
    "somebody_else": "by_somebody_else",
    "by_others": "by_somebody_else",
    "not": "not",
}
"""Values of tables and exports by those of logs and rulings; other values are missing."""
NO_STEP = -1
"""Value in the log of an error that was not corrected."""
ENTERED, MARKED, RULED = "entered", "marked", "ruled"


class ErrorRow(TypedDict):
    """One error; None is an unknown value. Seconds are of the session, or of the video in a data set.

    `step` is the label of the step at `node`. `reported_s` is when the tablet was touched, `at_s` when the error
    happened, if that was entered, with the uncertainty `bound_s`. `corrected_by` is an error_id, the node of a step
    as text, or `none`. `source` is `ruled` if annotators differed, `marked` if they agreed, else `entered`.
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
MarkedPlaceOf = Callable[[float], FilmPlace]
"""Returns the position of a second of the video that annotators marked."""


def error_rows(
    recording: str, state: State, ops: Iterable[Op], place_of: PlaceOf, marked_place_of: MarkedPlaceOf
) -> list[ErrorRow]:
    """Return a row for each error that was made, in order of time.

    `recording` is its id, `state` the reduced log with verdicts. Times that annotators marked replace entered ones.
    """
    reported_ns: dict[str, int] = {}
    for op in standing(ops):
        if op["kind"] in ("error", "add_error"):
            reported_ns.setdefault(op["body"]["error_id"], op["host_ns"])
    frozen, video = state["recording"], state["marked_video"]

    def place_of_frame(frames: int) -> FilmPlace:
        return marked_place_of(float(frames / video.fps))

    rows = [
        _row(recording, error, frozen["steps"], reported_ns.get(error["error_id"]), place_of, place_of_frame)
        for error in state["errors"].values()
        if counts(error)
    ]
    return sorted(rows, key=lambda row: (time_of(row), row["error_id"]))


def details_of(row: ErrorRow) -> dict[str, Any]:
    """Return the known values of an error, except its place in the recipe and its categories."""
    others = ("recording", "error_id", "step", "node", "categories", "planned")
    return {name: value for name, value in row.items() if name not in others and value is not None}


def time_of(row: ErrorRow) -> float:
    """Return when an error happened, else when it was reported, infinity if both are unknown."""
    times = (seconds for seconds in (row["at_s"], row["reported_s"]) if seconds is not None)
    return next(times, math.inf)


def _row(
    recording: str,
    error: ErrorState,
    steps: Mapping[str, FrozenStep],
    reported_ns: int | None,
    place_of: PlaceOf,
    place_of_frame: PlaceOf,
) -> ErrorRow:
    judged, moments, by = error.get("judged") or {}, error.get("moments", {}), error["corrected_by"]
    intent = judged.get("intent", error["intent"])
    # `at` is initially the time of the touch, which does not state when the error happened.
    node, is_set = error["node"], error["at"] != reported_ns

    def place(moment: str) -> FilmPlace | None:
        if moment in moments:
            frame = moments[moment]  # numbered from 1; the last frame of an error belongs to it
            position = None if frame is None else place_of_frame(frame if moment == "end" else frame - 1)
        else:
            host_ns = cast("int | None", error.get(moment)) if moment != "at" or is_set else None
            position = None if host_ns is None else place_of(host_ns)
        return None if position is None or position.outside else position

    places = {moment: place(moment) for moment in MOMENTS}
    seconds = {
        moment: None if position is None else round(position.film_s, 3) for moment, position in places.items()
    }
    at, reported = places["at"], None if reported_ns is None else place_of(reported_ns)

    return {
        "recording": recording,
        "error_id": error["error_id"],
        "step": steps[str(node)]["label"] if str(node) in steps else None,
        "node": node,
        "categories": [TAGS[category] for category in error["categories"]],
        "description": error["description"] or None,
        "planned": error["planned"],
        "intent": intent if intent in INTENTS else None,
        "noticed": NOTICED.get(judged.get("noticed", error["noticed"])),
        "at_s": seconds["at"],
        "end_s": seconds["end"],
        "point_of_no_return_s": seconds["point_of_no_return"],
        "noticed_s": seconds["noticed_at"],
        "corrected_by": "none" if by == NO_STEP else None if by is None else str(by),
        "corrected_s": seconds["corrected_at"],
        "reported_s": None if reported is None or reported.outside else round(reported.film_s, 3),
        "source": RULED if error.get("ruled") else MARKED if judged or moments else ENTERED,
        "bound_s": None if at is None else round(at.bound_s, 4),
    }

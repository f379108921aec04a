"""Step marks on the video of a recording: the initial marks, and the edits of each person applied to them.

Frames count from 0; the first and the last frame belong to the step. A mark made from a touch has the touch's id.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, NotRequired, TypedDict, cast

from pydantic import Field

from kitchensync.operations.errors import NotNow
from kitchensync.operations.operation_kinds import Node, Strict
from kitchensync.operations.session_state import Op
from kitchensync.recipe_app.review.rounds import Review

STEPS = Review("steps", "edit_step", "submit_steps")
ACCEPTED = "accept_steps"
"""Kind of the log: a version was accepted."""
BLANK_OF = 10
"""One boundary in `BLANK_OF` is left open instead of filled in from the touches, to measure the bias of touches."""
Frame = Annotated[int, Field(ge=0, le=10_000_000)]
End = Literal["start", "end"]
ENDS: tuple[End, End] = ("start", "end")


class StepMark(TypedDict):
    """A step on the video as somebody marked it, in frames; an end that is None is not marked yet."""

    mark: str
    node: int
    start: int | None
    end: int | None
    checked: list[str]
    removed: bool
    missing: bool
    doubt: NotRequired[float]
    choices: NotRequired[dict[End, list[int]]]
    "The ends that people marked, where a ruling is needed."


class FinishedMark(TypedDict):
    """A mark with both ends checked by somebody."""

    mark: str
    node: int
    start: int
    end: int
    checked: list[str]


class Touch(TypedDict):
    """A touch that a step is done, in frames of the video, from the video's facts."""

    node: int
    start: int
    end: int
    ended_ns: int
    doubt: float
    begun: str


class StepEdit(Strict):
    """A mark after an edit; an end that is None is not marked yet; `checked` are the ends somebody checked."""

    mark: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    node: Node
    start: Frame | None = None
    end: Frame | None = None
    checked: Annotated[list[Annotated[str, Field(pattern="^(start|end)$")]], Field(max_length=2)] = Field(
        default_factory=list
    )
    removed: bool = False
    missing: bool = False


def marks_of(
    ops: Iterable[Op], actor: str, initial: list[StepMark], kind: str = STEPS.edited
) -> list[StepMark]:
    """Return the marks of one person: the initial marks with their edits applied, in time order."""
    marks = {mark["mark"]: mark for mark in initial}
    for op in ops:
        if op["kind"] == kind and op["actor"] == actor:
            marks |= {edit["mark"]: _whole(edit) for edit in op["body"]["edits"]}

    def place(mark: StepMark) -> tuple[int, str]:
        at = next((at for at in (mark["start"], mark["end"]) if at is not None), 0)
        return at, mark["mark"]

    return sorted(marks.values(), key=place)


def initial_marks(recording: str, touched: Mapping[str, Touch]) -> list[StepMark]:
    """Return the initial marks for everybody: one for each touched step, one boundary in ten left open.

    A start that was not touched is the end of another step: both are open or neither. Each mark has at least one end.
    """
    marks: list[StepMark] = []
    open_at: set[int] = set()
    for name, touch in sorted(touched.items(), key=lambda item: (item[1]["end"], item[0])):
        start: int | None = touch["start"]
        end: int | None = touch["end"]
        is_touched = touch["begun"] == "touch"
        if _is_blank(recording, name, "start") if is_touched else start in open_at:
            start = None
        elif _is_blank(recording, name, "end"):
            open_at.add(touch["end"] + 1)
            end = None
        mark = _whole({"mark": name, "node": touch["node"], "start": start, "end": end})
        mark["doubt"] = touch["doubt"]
        marks.append(mark)
    return marks


def touched_marks(recording: str, touches: Iterable[Touch], ops: Iterable[Op]) -> dict[str, Touch]:
    """Return the touch of each mark by the mark's id, with no boundary left open.

    The id depends on the touch, not on its frame in the video, so it stays the same after another alignment.
    """
    known = {edit["mark"] for op in ops if op["kind"] == STEPS.edited for edit in op["body"]["edits"]}
    touched = {}
    for touch in touches:
        by_frames = _name(f"{recording} {touch['node']} {touch['start']} {touch['end']}")
        by_touch = _name(f"{recording} {touch['node']} {touch['ended_ns']}")
        touched[by_frames if by_frames in known else by_touch] = touch  # older logs name marks by frames
    return touched


def annotation_of(actor: str) -> int:
    """Return the annotation number of a person, the same in every recording."""
    return int(hashlib.sha256(actor.encode()).hexdigest()[:12], 16)


def regions_of(marks: Iterable[StepMark], labels: dict[int, str]) -> list[dict[str, Any]]:
    """Return finished marks as regions in the annotation server's format, which counts frames from 1."""
    return [
        {
            "id": mark["mark"],
            "type": "timelinelabels",
            "value": {
                "ranges": [{"start": mark["start"] + 1, "end": mark["end"] + 1}],
                "timelinelabels": [labels[mark["node"]]],
            },
        }
        for mark in finished(marks)
    ]


def finished(marks: Iterable[StepMark]) -> list[FinishedMark]:
    """Return the marks with both ends checked, of steps that were done."""
    shown = (mark for mark in marks if not (mark["removed"] or mark["missing"]))
    return cast("list[FinishedMark]", [mark for mark in shown if {*mark["checked"]} == {*ENDS}])


def require_finished(marks: list[StepMark], frames: int) -> None:
    """Raise NotNow with the first reason, unless every boundary was checked and is within the video."""
    for mark in marks:
        if mark["removed"] or mark["missing"]:
            continue
        if mark["start"] is None or mark["end"] is None:
            raise NotNow("not submitted: a boundary is not marked yet")
        if mark["end"] < mark["start"]:
            raise NotNow("not submitted: a step ends before it begins")
        if mark["end"] >= frames:
            raise NotNow("not submitted: a step ends after the film")
        if set(mark["checked"]) != {"start", "end"}:
            raise NotNow("not submitted: a boundary was not looked at yet")


def _whole(edit: Mapping[str, Any]) -> StepMark:
    fields = {key: value for key, value in edit.items() if key != "doubt"}
    return cast("StepMark", StepEdit.model_validate(fields).model_dump())


def _name(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _is_blank(recording: str, mark: str, end: str) -> bool:
    return int(hashlib.sha256(f"{recording} {mark} {end}".encode()).hexdigest()[:8], 16) % BLANK_OF == 0

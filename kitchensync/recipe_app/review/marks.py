"""What somebody marked on the film of a recording: edits of the log added up, and what they are given to begin with.

Frames count from 0, first and last belong to the step. A mark that came from a touch has the id of that touch.
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
"""Kind of the log: that a version was accepted."""
BLANK_OF = 10
"""One boundary in so many is not filled in from the touches, so that their pull on people can be measured."""
Frame = Annotated[int, Field(ge=0, le=10_000_000)]
End = Literal["start", "end"]
ENDS: tuple[End, End] = ("start", "end")


class StepMark(TypedDict):
    """A step on the film as somebody marked it, in frames; an end that is None is not marked yet."""

    mark: str
    node: int
    start: int | None
    end: int | None
    checked: list[str]
    removed: bool
    missing: bool
    doubt: NotRequired[float]
    choices: NotRequired[dict[End, list[int]]]
    "The ends that people gave, where somebody is to rule."


class FinishedMark(TypedDict):
    """A mark both ends of which somebody looked at."""

    mark: str
    node: int
    start: int
    end: int
    checked: list[str]


class Touch(TypedDict):
    """A time that a step was touched as done, in pictures of the film, as the film's facts tell it."""

    node: int
    start: int
    end: int
    ended_ns: int
    doubt: float
    begun: str


class StepEdit(Strict):
    """How a mark is after an edit; an end that is None is not marked yet; `checked` are those somebody looked at."""

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
    ops: Iterable[Op], actor: str, given: list[StepMark], kind: str = STEPS.edited
) -> list[StepMark]:
    """Return the marks of one person: those they were given, then what their edits made of them, in time order."""
    found = {mark["mark"]: mark for mark in given}
    for op in ops:
        if op["kind"] == kind and op["actor"] == actor:
            found |= {edit["mark"]: _whole(edit) for edit in op["body"]["edits"]}

    def place(mark: StepMark) -> tuple[int, str]:
        at = next((at for at in (mark["start"], mark["end"]) if at is not None), 0)
        return at, mark["mark"]

    return sorted(found.values(), key=place)


def given_marks(recording: str, touched: Mapping[str, Touch]) -> list[StepMark]:
    """Return what everybody begins with: a mark for each touched step, one boundary in ten of them left open.

    A start that nobody touched is where another step ended: both are open or neither. One end of each mark is known.
    """
    found: list[StepMark] = []
    open_at: set[int] = set()
    for name, touch in sorted(touched.items(), key=lambda one: (one[1]["end"], one[0])):
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
        found.append(mark)
    return found


def touched_marks(recording: str, touches: Iterable[Touch], ops: Iterable[Op]) -> dict[str, Touch]:
    """Return what the touches say of each mark, by its id: no boundary is left open.

    The id is that of the touch, wherever in the film it is placed: the same for everybody and after every alignment.
    """
    known = {edit["mark"] for op in ops if op["kind"] == STEPS.edited for edit in op["body"]["edits"]}
    found = {}
    for touch in touches:
        by_pictures = _name(f"{recording} {touch['node']} {touch['start']} {touch['end']}")
        by_touch = _name(f"{recording} {touch['node']} {touch['ended_ns']}")
        found[by_pictures if by_pictures in known else by_touch] = touch  # older logs name marks by pictures
    return found


def annotation_of(actor: str) -> int:
    """Return the number that the annotation of a person has: whole, the same in every recording."""
    return int(hashlib.sha256(actor.encode()).hexdigest()[:12], 16)


def regions_of(marks: Iterable[StepMark], labels: dict[int, str]) -> list[dict[str, Any]]:
    """Return finished marks as regions of the annotation server's form, whose frames count from 1."""
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
    """Return the marks that say when a step was done: somebody looked at both ends."""
    done = [one for one in marks if not (one["removed"] or one["missing"]) and {*one["checked"]} == {*ENDS}]
    return cast("list[FinishedMark]", done)


def require_finished(marks: list[StepMark], frames: int) -> None:
    """Raise NotNow, with the first reason, unless every boundary was looked at and lies in the film."""
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
    told = {key: value for key, value in edit.items() if key != "doubt"}
    return cast("StepMark", StepEdit.model_validate(told).model_dump())


def _name(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _is_blank(recording: str, mark: str, end: str) -> bool:
    return int(hashlib.sha256(f"{recording} {mark} {end}".encode()).hexdigest()[:8], 16) % BLANK_OF == 0

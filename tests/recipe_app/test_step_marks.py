"""Marks of steps: what is given to begin with, edits added up, and when they may be submitted."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

import hypothesis
import pytest
from hypothesis import strategies as st

from kitchensync.dataset.films.review_film import steps_of, touches_of
from kitchensync.dataset.source.own_recording import OwnRecording
from kitchensync.operations.errors import NotNow
from kitchensync.operations.reduce import reduce_log
from kitchensync.recipe_app.review.marks import (
    STEPS,
    StepMark,
    initial_marks,
    marks_of,
    regions_of,
    require_finished,
    touched_marks,
)
from kitchensync.recipe_app.review.rulings import merged, pairs_of_people
from kitchensync.storage.timeline.film_times import FilmPlace

SECOND_NS = 10**9
TOUCHES = [
    {
        "node": node,
        "start": 100 * node,
        "end": 100 * node + 90,
        "doubt": 1.5,
        "begun": "touch",
        "ended_ns": node * SECOND_NS,
    }
    for node in range(1, 501)
]
BOTH = ["start", "end"]


def given(
    recording: str, touches: list[dict[str, Any]], ops: Sequence[dict[str, Any]] = ()
) -> list[StepMark]:
    return initial_marks(recording, touched_marks(recording, touches, ops))


def edit(actor: str, **mark: Any) -> dict[str, Any]:
    return {"kind": STEPS.edited, "actor": actor, "body": {"edits": [mark]}}


def test_a_tenth_of_the_boundaries_is_left_open_the_same_ones_for_everybody() -> None:
    marks = given("rec-1", TOUCHES)
    open_ends = [(mark["node"], end) for mark in marks for end in BOTH if mark[end] is None]
    assert 70 <= len(open_ends) <= 130
    assert marks == given("rec-1", TOUCHES)
    assert all(
        mark[end] in (None, touch[end]) for mark, touch in zip(marks, TOUCHES, strict=True) for end in BOTH
    )
    assert all(mark["start"] is not None or mark["end"] is not None for mark in marks)
    others = given("rec-2", TOUCHES)
    assert open_ends != [(mark["node"], end) for mark in others for end in BOTH if mark[end] is None]


@hypothesis.given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.integers(0, 3), st.integers(0, 900), st.booleans()), max_size=30
    )
)
def test_the_marks_of_a_person_are_their_own_last_ones(done: list[tuple[str, int, int, bool]]) -> None:
    ops = [
        edit(
            who,
            mark=f"{name:016x}",
            node=name,
            start=at,
            end=at + 5,
            checked=BOTH,
            removed=gone,
            missing=False,
        )
        for who, name, at, gone in done
    ]
    last: dict[int, tuple[int, bool]] = {}
    for who, name, at, gone in done:
        if who == "a":
            last[name] = (at, gone)
    found = {mark["node"]: (mark["start"], mark["removed"]) for mark in marks_of(ops, "a", [])}
    assert found == last


def test_an_open_boundary_is_told_nowhere_else() -> None:
    chain = [one | {"start": one["start"] - 9, "begun": "end of the step before"} for one in TOUCHES]
    places = [(mark["start"], mark["end"]) for mark in given("rec-1", chain)]
    open_starts = [number for number, (start, _) in enumerate(places) if start is None]
    assert 30 <= len(open_starts) <= 70
    assert open_starts == [number + 1 for number, (_, end) in enumerate(places[:-1]) if end is None]
    assert places[0][0] == chain[0]["start"], "nothing ended there"
    assert (None, None) not in places


def looked_at(actor: str, marks: list[StepMark]) -> list[dict[str, Any]]:
    """Somebody looks at every boundary, and puts those that are open at their step's place."""
    ends = [{"start": 100 * mark["node"], "end": 100 * mark["node"] + 90} for mark in marks]
    return [edit(actor, **(mark | end | {"checked": BOTH})) for mark, end in zip(marks, ends, strict=True)]


def test_another_alignment_leaves_the_marks_of_everybody_as_they_are() -> None:
    touches = TOUCHES[:11]
    ops = [op for actor in "ab" for op in looked_at(actor, given("rec", touches))]
    later = given("rec", [one | {end: one[end] + 1 for end in BOTH} for one in touches], ops)
    marked = {actor: marks_of(ops, actor, later) for actor in "ab"}
    assert [len(marks) for marks in marked.values()] == [11, 11]
    assert marked == {actor: marks_of(ops, actor, given("rec", touches, ops)) for actor in "ab"}


def test_a_touch_that_arrives_when_all_have_submitted_is_left_to_rule() -> None:
    ops = [op for actor in "ab" for op in looked_at(actor, given("rec", TOUCHES[:10]))]
    later = given("rec", TOUCHES[:11], ops)
    marked = {actor: marks_of(ops, actor, later) for actor in "ab"}
    labels = {touch["node"]: str(touch["node"]) for touch in TOUCHES}
    assert pairs_of_people(marked, labels, Fraction(30), 2000)[0]["mean_iou"] == 1
    found = merged("rec", marked, Fraction(30))
    (late,) = (mark for mark in found if mark["checked"] != BOTH)
    assert (late["node"], late["choices"]) == (11, {"start": [], "end": []})
    assert {key: late[key] for key in later[10]} == later[10]
    assert len(found) == 11


def test_a_round_whose_marks_are_named_by_pictures_goes_on() -> None:
    def by_pictures(touch: dict[str, Any]) -> str:
        text = f"rec {touch['node']} {touch['start']} {touch['end']}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    first, other = TOUCHES[:2]
    ops = [edit("a", mark=by_pictures(first), node=1, start=103, end=190, checked=BOTH)]
    found = marks_of(ops, "a", given("rec", [first, other], ops))
    assert [(mark["node"], mark["start"]) for mark in found if mark["checked"]] == [(1, 103)]
    assert len(found) == 2


@dataclass
class Cooked:
    """A recording whose film begins `film_ns` on the capture clock, 30 pictures a second."""

    state: dict[str, Any]
    film_ns: int
    frames: Any

    def place(self, host_ns: int) -> FilmPlace:
        return FilmPlace((host_ns - self.film_ns) / SECOND_NS, 0.01)


class Pictures:
    fps = Fraction(30)

    def __len__(self) -> int:
        return 3000


def test_a_touch_is_told_with_its_moment_wherever_the_film_is_placed() -> None:
    steps = {str(node): {"label": f"Do-step {node}", "text": ""} for node in (1, 2, 3)}
    body = {"order": [1, 2, 3], "steps": steps, "edges": [], "planned": []}
    ops = [{"kind": "recording", "host_ns": 0, "body": body}]
    for kind, node, at_s in (
        *(("done", 1, 7), ("start", 2, 8), ("done", 2, 9), ("start", 2, 11), ("done", 2, 12)),
    ):
        ops.append({"kind": kind, "host_ns": at_s * SECOND_NS, "body": {"node": node}})
    log = [{"op_id": str(n), "n": n, "device": "t", "seen": 0} | op for n, op in enumerate(ops)]
    for film_s in (5, 6, 8):
        cooked = Cooked(reduce_log(log), film_s * SECOND_NS, Pictures())
        told = [
            (one["node"], one["end"], one["ended_ns"]) for one in touches_of(cast("OwnRecording", cooked))
        ]
        ends = [(node, at_s) for node, at_s in ((1, 7), (2, 9), (2, 12)) if at_s > film_s]
        assert told == [(node, 30 * (at_s - film_s) - 1, at_s * SECOND_NS) for node, at_s in ends]


def test_the_order_of_the_lanes_tells_nothing_of_the_script() -> None:
    steps = {str(node): {"label": f"Do-step {node}", "text": ""} for node in (3, 10, 2, 1)}
    told = [steps_of({"steps": steps, "order": order}) for order in ([1, 2, 3, 10], [10, 3, 1])]
    assert told[0] == told[1]
    assert [step["node"] for step in told[0]] == [1, 2, 3, 10]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"start": None}, "not marked yet"),
        ({"end": 9}, "ends before it begins"),
        ({"end": 600}, "ends after the film"),
        ({"checked": ["end"]}, "not looked at yet"),
        ({"removed": True, "start": None}, ""),
        ({"missing": True, "checked": []}, ""),
        ({}, ""),
    ],
)
def test_only_finished_marks_are_submitted(change: dict[str, Any], why: str) -> None:
    mark = {
        "mark": "0" * 16,
        "node": 1,
        "start": 10,
        "end": 20,
        "checked": BOTH,
        "removed": False,
        "missing": False,
    }
    if why:
        with pytest.raises(NotNow, match=why):
            require_finished([mark | change], 600)
    else:
        require_finished([mark | change], 600)


def test_frames_of_regions_count_from_one_and_both_ends_belong() -> None:
    mark = {
        "mark": "0" * 16,
        "node": 7,
        "start": 0,
        "end": 29,
        "checked": BOTH,
        "removed": False,
        "missing": False,
    }
    (region,) = regions_of(
        [mark, mark | {"removed": True}, mark | {"missing": True}], {7: "S01 · Add 1 banana"}
    )
    assert region["value"] == {"ranges": [{"start": 1, "end": 30}], "timelinelabels": ["S01 · Add 1 banana"]}

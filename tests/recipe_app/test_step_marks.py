"""Marks of steps: what is given to begin with, edits added up, and when they may be submitted."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipe_app.errors import NotNow
from recipe_app.review.marks import (
    STEPS,
    given_marks,
    marks_of,
    regions_of,
    require_finished,
)

TOUCHES = [
    {"node": node, "start": 100 * node, "end": 100 * node + 90, "doubt": 1.5, "begun": "touch"}
    for node in range(1, 501)
]
BOTH = ["start", "end"]


def edit(actor: str, **mark: Any) -> dict[str, Any]:
    return {"kind": STEPS.edited, "actor": actor, "body": {"edits": [mark]}}


def test_a_tenth_of_the_boundaries_is_left_open_the_same_ones_for_everybody() -> None:
    marks = given_marks("rec-1", TOUCHES)
    open_ends = [(mark["node"], end) for mark in marks for end in BOTH if mark[end] is None]
    assert 70 <= len(open_ends) <= 130
    assert marks == given_marks("rec-1", TOUCHES)
    assert all(
        mark[end] in (None, touch[end]) for mark, touch in zip(marks, TOUCHES, strict=True) for end in BOTH
    )
    others = given_marks("rec-2", TOUCHES)
    assert open_ends != [(mark["node"], end) for mark in others for end in BOTH if mark[end] is None]


@given(
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

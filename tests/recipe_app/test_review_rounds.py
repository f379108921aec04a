"""A round of review: who may answer, what they see of each other, what they agree on, and who rules on the rest."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kitchensync.operations.errors import NotNow
from kitchensync.recipe_app.errors import NotAllowed
from kitchensync.recipe_app.review.marks import STEPS
from kitchensync.recipe_app.review.rounds import ASSIGNED, REST_NS, round_of
from kitchensync.recipe_app.review.rulings import merged, pairs_of_people, pull_s

SECOND = 10**9
FPS = Fraction(30000, 1001)


def op(kind: str, actor: str, at_ns: int = 0, **body: Any) -> dict[str, Any]:
    return {"kind": kind, "actor": actor, "received_utc_ns": at_ns, "body": body}


def mark(name: int, node: int, start: int, end: int, **other: Any) -> dict[str, Any]:
    ends = {"start": start, "end": end, "checked": ["start", "end"]}
    return {"mark": f"{name:016x}", "node": node, **ends, "removed": False, "missing": False, **other}


def test_submitted_means_that_nothing_was_changed_since() -> None:
    edited, submitted, other = op(STEPS.edited, "a"), op(STEPS.submitted, "a"), op(STEPS.edited, "b")
    assert not round_of([edited], STEPS).people["a"].is_submitted
    assert round_of([edited, submitted, other], STEPS).people["a"].is_submitted
    assert not round_of([edited, submitted, edited], STEPS).people["a"].is_submitted


def test_a_round_is_complete_when_two_or_more_have_all_submitted() -> None:
    asked = op(ASSIGNED, "r", what="steps", people=["a", "b"])
    one, other = op(STEPS.submitted, "a"), op(STEPS.submitted, "b")
    for ops in ([], [one], [asked, one], [one, op(STEPS.edited, "b")]):
        with pytest.raises(NotNow):
            round_of(ops, STEPS).require_complete()
    round_of([one, other], STEPS).require_complete()
    here = round_of([op(STEPS.submitted, "c"), asked, one, other], STEPS)
    here.require_complete()
    here.require_member("a")
    with pytest.raises(NotAllowed):
        here.require_member("c")
    for_errors = op(ASSIGNED, "r", what="errors", people=["c"])
    round_of([for_errors], STEPS).require_member("a")


def test_a_round_that_is_complete_stays_so() -> None:
    asked = op(ASSIGNED, "r", what="steps", people=["a", "b"])
    ops = [asked, op(STEPS.submitted, "a"), op(STEPS.submitted, "b")]
    here = round_of(ops, STEPS)
    later = [
        op(STEPS.edited, "a"),
        op(STEPS.edited, "c"),
        op(ASSIGNED, "r", what="steps", people=["a", "b", "c"]),
    ]
    for one in later:
        assert round_of([*ops, one], STEPS) == here
    for refused in (lambda: here.require_open("a"), here.require_hidden, lambda: here.require_ruler("b")):
        with pytest.raises(NotNow):
            refused()
    here.require_ruler("r")


def test_work_counts_what_lies_between_operations_but_no_rest() -> None:
    at_ns = [0, 10 * SECOND, 15 * SECOND, 15 * SECOND + 10 * REST_NS]
    ops = [op(STEPS.edited, "a", at) for at in at_ns] + [op(STEPS.edited, "b", 99 * SECOND)]
    assert round_of(ops, STEPS).people["a"].work_ns == 15 * SECOND + REST_NS
    assert round_of(ops, STEPS).people["b"].work_ns == 0


def test_agreement_of_two_people_is_what_was_planted() -> None:
    ann = [mark(1, 5, 300, 599), mark(2, 6, 600, 899), mark(3, 7, 900, 1199, missing=True)]
    ben = [mark(1, 5, 303, 599), mark(2, 6, 600, 929), mark(4, 8, 10, 20, removed=True)]
    (pair,) = pairs_of_people({"ann": ann, "ben": ben}, {5: "five", 6: "six", 7: "x", 8: "y"}, FPS, 1800)
    frame_s = 1001 / 30000
    assert [one["error_s"] for one in pair["by_boundary"]] == pytest.approx([3 * frame_s, 0, 0, 30 * frame_s])
    assert pair["boundary_error_median_s"] == pytest.approx(1.5 * frame_s)
    assert pair["boundary_error_max_s"] == pytest.approx(30 * frame_s)
    assert pair["mean_iou"] == pytest.approx((297 / 300 + 300 / 330) / 2)
    # of 1,800 frames 3 and 30 differ; by chance: nothing 1200 x 1173, five 300 x 297, six 300 x 330
    by_chance = (1200 * 1173 + 300 * 297 + 300 * 330) / 1800**2
    assert pair["kappa"] == pytest.approx(((1800 - 33) / 1800 - by_chance) / (1 - by_chance))


def test_what_people_agree_on_holds_and_the_rest_is_left_to_rule() -> None:
    ann = [mark(1, 5, 300, 599), mark(2, 6, 600, 899), mark(9, 7, 1000, 1100)]
    ben = [mark(1, 5, 303, 640), mark(8, 6, 605, 899)]
    first, second, third = merged("rec", {"ann": ann, "ben": ben}, FPS)
    assert (first["start"], first["end"], first["checked"]) == (300, 599, ["start"])
    assert first["choices"] == {"start": [300, 303], "end": [599, 640]}
    assert (second["node"], second["checked"]) == (6, ["start", "end"])
    assert (third["node"], third["checked"]) == (7, [])
    assert merged("rec", {"ann": ann, "ben": ben}, FPS) == [first, second, third]


SPANS = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 500), st.integers(0, 80)), max_size=6)


@given(st.lists(SPANS, min_size=2, max_size=4))
def test_every_mark_of_everybody_is_in_one_merged_mark(people: list[list[tuple[int, int, int]]]) -> None:
    marked = {
        str(who): [mark(100 * who + k, node, at, at + more) for k, (node, at, more) in enumerate(spans)]
        for who, spans in enumerate(people)
    }
    found = [
        (one["node"], start, end)
        for one in merged("rec", marked, FPS)
        for start, end in zip(one["choices"]["start"], one["choices"]["end"], strict=True)
    ]
    assert sorted(found) == sorted((node, at, at + more) for spans in people for node, at, more in spans)
    assert len({one["mark"] for one in merged("rec", marked, FPS)}) == len(merged("rec", marked, FPS))
    if len({tuple(spans) for spans in people}) == 1:
        alike = merged("rec", marked, FPS)
        assert len(alike) >= len({(node, at) for node, at, _ in people[0]})


def test_the_pull_of_touches_is_measured_apart_for_what_was_left_open() -> None:
    touches = {f"{1:016x}": {"start": 100, "end": 200}}
    given_to_them = [mark(1, 5, 100, 200) | {"end": None}]
    said = pull_s({"ann": [mark(1, 5, 103, 230), mark(7, 5, 0, 9)]}, touches, given_to_them, Fraction(30))
    assert said == {
        "filled_in": {"boundaries": 1, "median_s": 0.1},
        "left_open": {"boundaries": 1, "median_s": 1.0},
    }

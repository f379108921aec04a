"""Entries of the published form from a tablet's log: order, times, repeats, and which errors count."""

from __future__ import annotations

from typing import Any

from kitchensync.operations.entries import entries_of
from kitchensync.operations.reduce import reduce_log
from kitchensync.storage.timeline.film_times import FilmPlace

STEPS = {str(n): {"label": f"Do-Do thing {n}", "text": f"Do thing {n}"} for n in (1, 2, 3, 4)}


def log(*said: tuple[str, dict[str, Any], int]) -> dict[str, Any]:
    frozen = {"order": [2, 1, 3], "steps": STEPS, "edges": [], "planned": [], "strategy": "normal"}
    ops = [("recording", frozen, 0), *said]
    return reduce_log(
        {"op_id": f"op{n}", "kind": kind, "body": body, "host_ns": at, "device": "t", "seen": n, "n": n}
        for n, (kind, body, at) in enumerate(ops)
    )


def place(host_ns: int) -> FilmPlace:
    return FilmPlace(host_ns / 10, 0.03)


def entries(*said: tuple[str, dict[str, Any], int]) -> list[Any]:
    return entries_of(log(*said), place, lambda label: int(label.rpartition(" ")[2]))


def test_entries_stand_in_the_script_s_order_and_what_was_not_done_has_minus_one() -> None:
    found = entries(("done", {"node": 1}, 50), ("done", {"node": 2}, 80))
    assert [(told.node, told.entry.start_s, told.entry.end_s) for told in found] == [
        (2, 5.0, 8.0),
        (1, 0.0, 5.0),
        (3, -1.0, -1.0),
        (4, -1.0, -1.0),
    ]
    assert [told.beside["start"] for told in found[:2]] == ["end of the step before"] * 2


def test_a_step_that_was_begun_by_touch_starts_there_and_one_done_twice_has_two_entries() -> None:
    found = entries(
        ("start", {"node": 2}, 30),
        ("done", {"node": 2}, 50),
        ("reopen", {"node": 2}, 70),
        ("done", {"node": 2}, 90),
    )
    assert [(t.entry.start_s, t.entry.end_s) for t in found if t.node == 2] == [(3.0, 5.0), (7.0, 9.0)]
    assert found[0].beside["start"] == "touch"


def test_errors_count_unless_they_were_taken_out_or_not_made() -> None:
    def error(number: int, **fields: Any) -> dict[str, Any]:
        return {"error_id": f"e{number}", "fields": {"node": 1, "categories": [number], **fields}}

    found = entries(
        ("plan_error", error(4, text="Do it with a spoon", description="spoon"), 0),
        ("plan_error", error(1, outcome="not_done"), 0),
        ("error", error(0, expected="two", actual="one"), 40),
        ("error", error(3), 45),
        ("done", {"node": 1}, 50),
        ("edit_error", {"error_id": "e3", "fields": {"removed": True}}, 60),
    )
    (told,) = (one for one in found if one.node == 1)
    tags = [(error.tag, error.description) for error in told.entry.errors]
    assert tags == [("Technique Error", "spoon"), ("Preparation Error", "one instead of two")]
    assert told.entry.modified == "Do it with a spoon"
    assert [error["removed"] for error in told.beside["errors"]] == [False, False, False, True]


def test_what_the_recipe_says_what_was_planned_and_what_was_shown_stand_side_by_side() -> None:
    def error(number: int, **fields: Any) -> dict[str, Any]:
        return {"error_id": f"e{number}", "fields": {"categories": [number], **fields}}

    found = entries(
        ("plan_error", error(1, node=1, text="Do thing 10"), 0),
        ("plan_error", error(6, node=3), 0),
        ("start", {"node": 1, "shown": "Do thing 10"}, 30),
        ("done", {"node": 1, "shown": "Do thing 10"}, 50),
        ("done", {"node": 2, "shown": "Do thing 2"}, 60),
    )
    sides = {
        told.node: {key: told.beside[key] for key in ("original", "planned", "shown") if key in told.beside}
        for told in found
    }
    assert sides[1] == {"original": "Do thing 1", "planned": "Do thing 10", "shown": "Do thing 10"}
    assert sides[2] == {"shown": "Do thing 2"}
    assert sides[3] == {"original": "Do thing 3", "planned": None}

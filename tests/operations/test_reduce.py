"""States reduced from operations compared with results by hand; server and tablet agree."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import javascript
import pytest
from histories import history, operation, recording_body

from kitchensync.operations.reduce import UNDOABLE, reduce_log
from kitchensync.recipe_app.store.app_records import new_id

REDUCE_JS = (
    Path(__file__).resolve().parents[2] / "kitchensync" / "recipe_app" / "static" / "core" / "reduce.js"
)
RNG = random.Random(1)


def log(*kinds: tuple[str, dict[str, Any]], **more: Any) -> list[dict[str, Any]]:
    """Return the log of one device that has seen all its operations, one per second."""
    first = operation(RNG, 1, "recording", recording_body(), device="server", seen=0, host_ns=0)
    rest = [
        operation(RNG, n, kind, body, device="tablet", seen=n - 1, host_ns=n * 10**9, **more)
        for n, (kind, body) in enumerate(kinds, start=2)
    ]
    return [first, *rest]


def undo(*ops: dict[str, Any]) -> dict[str, Any]:
    return operation(RNG, 99, "undo", {"undoes": [op["op_id"] for op in ops]}, device="tablet", seen=98)


def test_several_steps_are_open_at_once() -> None:
    state = reduce_log(log(("start", {"node": 4}), ("start", {"node": 7}), ("done", {"node": 4})))
    assert (state["steps"]["4"]["state"], state["steps"]["7"]["state"]) == ("done", "open")
    assert state["steps"]["4"]["runs"] == [{"start": 2 * 10**9, "end": 4 * 10**9}]


def test_a_step_done_twice_has_two_runs() -> None:
    state = reduce_log(
        log(("start", {"node": 4}), ("done", {"node": 4}), ("reopen", {"node": 4}), ("done", {"node": 4}))
    )
    assert [run["end"] for run in state["steps"]["4"]["runs"]] == [3 * 10**9, 5 * 10**9]


def test_a_paused_step_goes_on_in_the_same_run() -> None:
    kinds = ("start", "hold", "hold", "start", "hold", "done")
    ops = log(*((kind, {"node": 4}) for kind in kinds))
    step = reduce_log(ops)["steps"]["4"]
    holds = [{"start": 3 * 10**9, "end": 5 * 10**9}, {"start": 6 * 10**9, "end": 7 * 10**9}]
    assert step == {"state": "done", "runs": [{"start": 2 * 10**9, "end": 7 * 10**9, "holds": holds}]}
    assert reduce_log(ops[:3])["steps"]["4"]["state"] == "held"
    assert reduce_log([*ops[:3], undo(ops[2])])["steps"]["4"]["state"] == "open"
    step = reduce_log([*ops[:3], *log(("skip", {"node": 4}))[1:]])["steps"]["4"]
    assert step == {"state": "skipped", "runs": []}


def test_an_undo_can_be_undone() -> None:
    ops = log(("start", {"node": 4}), ("done", {"node": 4}))
    taken = undo(ops[-1])
    assert reduce_log([*ops, taken])["steps"]["4"]["state"] == "open"
    assert reduce_log([*ops, taken, undo(taken)])["steps"]["4"]["state"] == "done"
    assert reduce_log([*ops, taken, taken])["steps"]["4"]["state"] == "open"


def test_operations_of_one_touch_are_undone_together() -> None:
    ops = log(("start", {"node": 4}), ("done", {"node": 4}))
    ops += log(("start", {"node": 7, "with_op": ops[-1]["op_id"]}))[1:]
    assert reduce_log(ops)["last"] == [ops[-2]["op_id"], ops[-1]["op_id"]]


def edits(seen: tuple[int, int]) -> dict[str, Any]:
    error_id = new_id(5)
    ops = log(("plan_error", {"error_id": error_id, "fields": {"node": 4, "categories": [3]}}))
    for number, (device, text) in enumerate((("tablet", "ten seconds"), ("desk", "an hour"))):
        body = {"error_id": error_id, "fields": {"text": text}}
        stamp = {"device": device, "seen": seen[number], "host_ns": (9 - number) * 10**9}
        ops.append(operation(RNG, 3 + number, "edit_error", body, **stamp))
    error: dict[str, Any] = reduce_log(ops)["errors"][error_id]
    return error


def test_concurrent_edits_make_a_conflict_and_the_later_one_is_shown() -> None:
    error = edits(seen=(2, 2))
    assert error["text"] == "ten seconds"
    assert [version["value"] for version in error["conflicts"]["text"]] == ["an hour", "ten seconds"]
    assert {version["device"] for version in error["conflicts"]["text"]} == {"tablet", "desk"}


def test_a_device_that_saw_the_other_version_makes_no_conflict() -> None:
    assert edits(seen=(2, 3))["conflicts"] == {}


def test_an_edit_after_both_versions_ends_the_conflict() -> None:
    error_id = new_id(5)
    ops = log(("plan_error", {"error_id": error_id, "fields": {"node": 4, "categories": [3]}}))
    for n, device, seen, text in ((3, "tablet", 2, "a"), (4, "desk", 2, "b"), (5, "tablet", 4, "c")):
        body = {"error_id": error_id, "fields": {"text": text}}
        stamp = {"device": device, "seen": seen, "host_ns": (9 - n) * 10**9}
        ops.append(operation(RNG, n, "edit_error", body, **stamp))
    error = reduce_log(ops)["errors"][error_id]
    assert (error["text"], error["conflicts"]) == ("c", {})  # although it was entered first


def test_the_last_tablet_that_took_a_recording_holds_it() -> None:
    ops = log(("claim", {}))
    other = operation(RNG, 9, "claim", {}, device="other", seen=3)
    assert (reduce_log(ops)["holder"], reduce_log([*ops, other])["holder"]) == ("tablet", "other")
    assert reduce_log([*ops, operation(RNG, 10, "release", {}, device="server", seen=3)])["holder"] is None


def test_a_privacy_pause_lasts_until_it_is_ended() -> None:
    ops = log(("pause", {}), ("pause", {}), ("resume", {}), ("resume", {}), ("pause", {}))
    assert reduce_log(ops)["pauses"] == [
        {"start": 2 * 10**9, "end": 4 * 10**9},
        {"start": 6 * 10**9, "end": None},
    ]


def test_an_undone_operation_can_be_redone_until_a_new_one() -> None:
    ops = log(("start", {"node": 4}), ("done", {"node": 4}))
    first = undo(ops[-1])
    second = undo(ops[-2])
    assert reduce_log([*ops, first, second])["redo"] == [first["op_id"], second["op_id"]]
    again = [*ops, first, second, undo(second)]
    assert (reduce_log(again)["redo"], reduce_log(again)["steps"]["4"]["state"]) == ([first["op_id"]], "open")
    assert reduce_log([*again, *log(("start", {"node": 7}))[1:]])["redo"] == []


def test_an_undone_plan_is_not_redone_while_cooking() -> None:
    ops = log(("plan_error", {"error_id": new_id(5), "fields": {"node": 4, "categories": [1]}}))
    state = reduce_log([*ops, undo(ops[-1])])
    assert (state["errors"], state["redo"]) == ({}, [])


def test_undo_while_cooking_does_not_affect_plans_reviews_or_the_desk() -> None:
    plan = {"error_id": new_id(5), "fields": {"node": 4, "categories": [1]}}
    planned = log(("plan_error", plan), ("prepared", {}), ("checked", {"version": "1"}))
    assert reduce_log(planned)["last"] == []
    cooked = log(("plan_error", plan), ("start", {"node": 4}))
    start = cooked[-1]["op_id"]
    review = {"error_id": plan["error_id"], "fields": {"outcome": "as_planned"}}
    for kind, body, device in (("edit_error", review, "tablet"), ("done", {"node": 4}, "server")):
        later = operation(RNG, 50, kind, body, device=device, seen=49)
        assert reduce_log([*cooked, later])["last"] == [start]
    assert reduce_log([*cooked, undo(cooked[-1])])["last"] == []


def test_requests_that_devices_refused_change_nothing() -> None:
    def request(action: str, *reasons: str) -> tuple[str, dict[str, Any]]:
        return "capture", {"action": action, "folder": "soup_1", "reasons": list(reasons)}

    assert reduce_log(log(request("start", "headset: unreachable")))["capture"] is None
    running = log(request("start"), request("stop", "soup_1 is not running"))
    assert reduce_log(running)["capture"]["action"] == "start"
    assert (
        reduce_log(log(request("start"), request("stop", "busy"), request("stop")))["capture"]["action"]
        == "stop"
    )


def test_a_withdrawal_can_be_undone_by_its_own_operation() -> None:
    ops = log(("prepared", {}), ("withdraw", {}), ("withdraw", {}), ("keep", {}))
    assert [reduce_log(ops[: count + 1])["phase"] for count in range(1, 5)] == [
        "checklist",
        "withdrawn",
        "withdrawn",
        "checklist",
    ]
    assert reduce_log([*ops[:2], *ops[4:]]) == {**reduce_log(ops[:2]), "count": 3}


def test_a_withdrawn_recording_stays_withdrawn() -> None:
    ops = log(("consent", {"version": "1", "accepted": False}), ("withdraw", {}), ("finish", {}))
    assert reduce_log(ops)["phase"] == "withdrawn"
    state = reduce_log([*ops, *(undo(op) for op in ops)])  # but not a choice, an answer or a withdrawal
    assert (state["phase"], state["consent"]["accepted"]) == ("withdrawn", False)
    assert state["recording"] is not None


@pytest.mark.parametrize("seed", range(25))
def test_repeating_operations_changes_nothing(seed: int) -> None:
    ops = history(seed)
    again = ops + [op for op in ops if op["n"] is not None]
    assert {**reduce_log(again), "count": 0} == {**reduce_log(ops), "count": 0}


@pytest.mark.parametrize("seed", range(25))
def test_undone_operations_leave_no_trace(seed: int) -> None:
    ops = [op for op in history(seed) if op["kind"] != "undo"]
    ops = list({op["op_id"]: op for op in ops}.values())
    taken = [op for op in ops[1:] if op["n"] and op["n"] % 3 == 0 and op["kind"] in UNDOABLE]
    without = [op for op in ops if op not in taken]
    fold_of_all = reduce_log([*ops, *(undo(op) for op in taken)])
    other = {"count": 0, "redo": []}  # undone operations could be redone
    assert {**fold_of_all, **other} == {**reduce_log(without), **other}


def test_tablet_and_server_reduce_operations_alike() -> None:
    histories = [history(seed, length=60) for seed in range(200)]
    code = (
        f"import {{ reduceLog }} from '{REDUCE_JS.as_uri()}';"
        "let text = ''; for await (const part of process.stdin) text += part;"
        "process.stdout.write(JSON.stringify(JSON.parse(text).map(reduceLog)));"
    )
    reduced = json.loads(javascript.run(code, json.dumps(histories)))
    for ops, theirs in zip(histories, reduced, strict=True):
        assert theirs == reduce_log(ops)
    assert (
        sum(len(error["conflicts"]) for ops in histories for error in reduce_log(ops)["errors"].values()) > 50
    )

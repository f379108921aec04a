"""Plans of recipes compared with results by hand; server and tablet agree."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import javascript
from histories import history, operation, recording_body
from recipe_lines import AMOUNTS, SECONDS

from kitchensync.operations.planned_steps import PlannedSteps, numbered_steps, plan_of
from kitchensync.operations.reduce import reduce_log
from kitchensync.recipe_app.store.app_records import new_id
from kitchensync.task_graphs.formats.graph_files import read_graph
from kitchensync.task_graphs.text.spans import timers

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "kitchensync" / "recipe_app" / "static" / "core"
RNG = random.Random(7)


def planned(*errors: dict[str, Any], **frozen: Any) -> PlannedSteps:
    """Return the plan of a recording of the steps 4, 7, 9, 12 with these errors, planned in this order."""
    body = recording_body(language="de", **frozen)
    ops = [operation(RNG, 1, "recording", body, device="server", seen=0)]
    for n, fields in enumerate(errors, start=2):
        made = {"error_id": new_id(n), "fields": fields}
        ops.append(operation(RNG, n, "plan_error", made, device="tablet", seen=n - 1))
    return plan_of(reduce_log(ops))


def test_the_planned_text_replaces_the_step_s_text_in_its_own_language() -> None:
    plan = planned({"node": 7, "categories": [1], "text": "Stir 8", "language": "en"})
    assert (plan.order, plan.left_out) == ((4, 7, 9, 12), ())
    assert (plan.steps[7].words, plan.steps[7].language, plan.steps[7].is_planned) == ("Stir 8", "en", True)
    assert (plan.steps[4].words, plan.steps[4].language, plan.steps[4].is_planned) == ("Stir 4", "de", False)


def test_other_planned_errors_of_a_step_follow_in_brackets() -> None:
    plan = planned(
        {"node": 7, "categories": [1], "text": "Stir 8", "description": "8 instead of 7"},
        {"node": 7, "categories": [4], "description": "with a fork"},
        {"node": 7, "categories": [3], "text": "Stir 7 at once"},
    )
    assert plan.steps[7].words == "Stir 7 at once (8 instead of 7; with a fork)"


def test_a_moved_or_omitted_step_is_not_also_noted_in_its_text() -> None:
    plan = planned(
        {"node": 12, "categories": [2], "before": 7, "description": "too early"},
        {"node": 4, "categories": [6], "description": "Leave it out"},
    )
    assert (plan.order, plan.left_out) == ((12, 7, 9), (4,))
    assert plan.steps[12].words == "Stir 12"
    nowhere = planned({"node": 12, "categories": [2], "before": 12, "description": "too early"})
    assert (nowhere.order, nowhere.steps[12].words) == ((4, 7, 9, 12), "Stir 12 (too early)")


def test_a_script_keeps_its_order_and_removed_errors_are_not_planned() -> None:
    stated = {"error_id": new_id(1), "fields": {"node": 9, "categories": [2], "description": "Do 9 first"}}
    plan = planned({"node": 4, "categories": [6], "removed": True}, order=[9, 7, 12], planned=[stated])
    assert (plan.order, plan.left_out, plan.steps[9].words) == ((9, 7, 12), (4,), "Stir 9")


def test_steps_are_listed_in_cooking_order_with_their_shown_numbers() -> None:
    ops = [operation(RNG, 1, "recording", recording_body(order=[4, 7, 9]), device="server", seen=0)]
    for n, (kind, node) in enumerate((("start", 9), ("done", 9), ("done", 12), ("start", 4)), start=2):
        ops.append(
            operation(RNG, n, kind, {"node": node}, device="tablet", seen=n - 1) | {"host_ns": n * 10**9}
        )
    state = reduce_log(ops)
    assert list(numbered_steps(state, plan_of(state)).items()) == [(9, 3), (12, None), (4, 1), (7, 2)]


def test_tablet_and_server_plan_alike() -> None:
    """Compare random histories; enough of them must change texts, order or steps to be meaningful."""
    states = [reduce_log(history(seed, length=60)) for seed in range(300)]
    code = (
        f"import {{ numberedSteps, planOf }} from '{(CORE / 'plan.js').as_uri()}';"
        "const both = (state) => { const plan = planOf(state);"
        "  return { ...plan, numbers: numberedSteps(state, plan) }; };"
        "let text = ''; for await (const part of process.stdin) text += part;"
        "process.stdout.write(JSON.stringify(JSON.parse(text).map(both)));"
    )
    theirs = json.loads(javascript.run(code, json.dumps(states)))
    changed = {"words": 0, "order": 0, "left_out": 0, "listed": 0}
    for state, answer in zip(states, theirs, strict=True):
        plan = plan_of(state)
        assert (answer["order"], answer["left"]) == (list(plan.order), list(plan.left_out))
        numbers = numbered_steps(state, plan)
        assert answer["numbers"] == [list(item) for item in numbers.items()]
        changed["listed"] += list(numbers) != [*plan.order, *plan.left_out]
        for node, step in plan.steps.items():
            same = {"words": step.words, "language": step.language, "planned": step.is_planned}
            assert answer["steps"][str(node)] == same
            changed["words"] += step.is_planned
        kept = [node for node in state["recording"]["order"] if node not in plan.left_out]
        changed["order"] += kept != list(plan.order)
        changed["left_out"] += bool(plan.left_out)
    assert min(changed.values()) > 30, changed


def test_tablet_and_server_compute_the_same_durations() -> None:
    texts = [
        step.text
        for path in (ROOT / "kitchensync" / "examples" / "recipes").glob("*.json")
        for step in read_graph(path).steps
    ]
    texts += [
        "Rest 1 1/2 hours and 5 minutes",
        "Stir for 2-3 minutes, then two more minutes",
        "Wait 30 SECONDS",
    ]
    texts += ["Wait 40 hours", "Cut in five", "Fry 0.5 min.", "Bake 10 to 12 mins and 20 secs"]
    texts += [*AMOUNTS, *SECONDS]
    code = (
        f"import {{ durations }} from '{(CORE / 'durations.js').as_uri()}';"
        "let text = ''; for await (const part of process.stdin) text += part;"
        "process.stdout.write(JSON.stringify(JSON.parse(text).map(durations)));"
    )
    ours = [
        [{n: getattr(d, n) for n in ("seconds", "most_seconds", "text")} for d in timers(t)] for t in texts
    ]
    assert sum(map(len, ours)) > 8
    assert json.loads(javascript.run(code, json.dumps(texts))) == ours

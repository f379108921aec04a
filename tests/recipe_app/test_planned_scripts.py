"""Error scripts in a plan: kept apart as orders are, given to the session that begins, known of what was cooked."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from small_recordings import write_manifest

from kitchensync.recipe_app.store.app_records import new_id
from kitchensync.recipe_app.study import next_sessions
from kitchensync.recipe_app.study.already_cooked import CookedRecording, cooked_below
from kitchensync.recipe_app.study.as_cooked import as_cooked
from kitchensync.recipe_app.study.error_scripts import draw_unused, script_of
from kitchensync.recipe_app.study.make_plan import make_plan
from kitchensync.recipe_app.study.plan_file import KINDS_IN_TURN, PlanEntry
from kitchensync.recipe_app.study.wanted import (
    Cook,
    CookedSession,
    OpenHours,
    Study,
    StudyGoal,
    StudyKitchen,
    StudyRules,
)
from kitchensync.storage.manifest import edit_manifest
from kitchensync.task_graphs.formats.captaincook4d import parse_captaincook4d
from kitchensync.task_graphs.formats.graph_files import read_graph
from kitchensync.task_graphs.model import Graph

RECIPES = Path(__file__).resolve().parents[2] / "kitchensync" / "examples" / "recipes"
LEMONADE = read_graph(RECIPES / "fresh_lemonade.json")
ROW = {"0": "START", "1": "Add-2 cups of rice", "2": "Add-3 cups of milk", "3": "Stir-the rice", "4": "END"}
FEW = parse_captaincook4d(
    json.dumps({"steps": ROW, "edges": list(itertools.pairwise(range(5)))}), name="few.json"
)
"""Three steps in a row: a recipe of very few scripts."""
DRAWN = [("disordered", ""), ("induced", "Measurement")]


def made(
    graph: Graph, *, cooked: Sequence[CookedRecording] = (), kept: Sequence[PlanEntry] = (), **wanted: int
) -> dict[str, Any]:
    """The plan of a study that wants so many of each strategy of one recipe, by one person."""
    goals = tuple(StudyGoal("dish", strategy, count) for strategy, count in wanted.items())
    always = OpenHours(tuple((day, time(8), time(20)) for day in range(7)))
    cook, kitchen = Cook("Basil", always), StudyKitchen("north", always, "rig")
    zone, rules = ZoneInfo("UTC"), StudyRules(per_person_and_recipe=99)
    study = Study(zone, date(2027, 3, 1), 40, 60, 15, goals, (cook,), (kitchen,), rules)
    return make_plan(study, {"dish": graph}, cooked, kept)


def planned(graph: Graph, **more: Any) -> list[PlanEntry]:
    said = made(graph, **more)
    return [PlanEntry.model_validate(one) for one in said["sessions"]]


def possible(strategy: str, category: str) -> list[str]:
    drawn = (script_of(FEW, strategy, seed=seed, category=category) for seed in range(60))
    return sorted(set(drawn))


def test_each_session_has_a_seed_and_a_script_of_its_own_and_the_same_in_the_same_plan() -> None:
    first = planned(LEMONADE, normal=3, disordered=9, induced=14)
    assert (len(first), all(isinstance(one.seed, int) for one in first)) == (26, True)
    found = [one.script for one in first if one.strategy != "normal"]
    assert len({*found} - {""}) == len(found) == 23
    assert {one.script for one in first if one.strategy == "normal"} == {""}
    assert planned(LEMONADE, normal=3, disordered=9, induced=14) == first


@pytest.mark.slow
@pytest.mark.parametrize(("strategy", "category"), DRAWN)
def test_all_scripts_are_used_before_one_comes_again(strategy: str, category: str) -> None:
    every, used = possible(strategy, category), Counter[str]()
    assert len(every) > 1
    for times in (1, 2):
        for _ in every:
            rng = random.Random(f"{times} {used}")
            seed, script = draw_unused(FEW, strategy, category, used=used, rng=rng)
            assert script == script_of(FEW, strategy, seed=seed, category=category)
            used[script] += 1
        assert used == dict.fromkeys(every, times)


@pytest.mark.slow
@pytest.mark.parametrize(("strategy", "category"), DRAWN)
def test_the_one_script_that_nobody_cooked_is_planned(strategy: str, category: str) -> None:
    every = possible(strategy, category)
    others = tuple(number for number, name in enumerate(KINDS_IN_TURN) if name != category)
    for free in every:
        cooked = [
            CookedRecording(
                CookedSession(
                    "dish", strategy, "steps", "Basil", "north", datetime(2027, 2, day, 9, tzinfo=UTC)
                ),
                (),
                f"take_{day}",
                ("recorded",),
                categories=others,
                script=script,
            )
            for day, script in enumerate(every, start=1)
            if script != free
        ]
        (new,) = planned(FEW, cooked=cooked, **{strategy: len(every)})
        assert (new.category, new.script) == (category, free)


def test_sessions_that_stay_keep_their_scripts_and_new_ones_get_others() -> None:
    first = planned(FEW, disordered=2)
    for one, other in (first, first[::-1]):
        again = planned(FEW, kept=[one], disordered=2)
        assert one in again
        assert {entry.script for entry in again} == {one.script, other.script}


@pytest.mark.parametrize("changed", [{}, {"seed": 1}, {"category": "Timing"}])
def test_a_session_that_stays_and_gets_another_script_is_named(changed: dict[str, Any]) -> None:
    (first,) = planned(LEMONADE, induced=1)
    notes = made(LEMONADE, kept=[first.model_copy(update=changed)], induced=1)["notes"]
    assert [note for note in notes if "gets another error script when it begins" in note] == notes
    assert len(notes) == bool(changed)


STUDY = """
goals = [{ recipe = "fresh_lemonade", strategy = ["disordered", "induced"], count = COUNT }]
[study]
zone = "UTC"
begin = 2026-09-21
days = 30
session_minutes = 60
[people.Basil]
hours = ["mon-sun 08:00-20:00"]
[kitchens."Lab kitchen"]
hours = ["mon-sun 08:00-20:00"]
[rules]
per_person_and_recipe = 20
"""


def plan_at_the_desk(kitchen: Any, count: int) -> list[Any]:
    """Plan at the desk, and return the sessions that nobody began."""
    seen, _ = next_sessions.kept_plan(kitchen.tools.records)
    body = {"study": STUDY.replace("COUNT", str(count)), "seen": seen, "locked": []}
    answer = kitchen.desk("operator").post("/api/v1/desk/study", json=body)
    assert answer.status_code == 200, answer.text
    gone = next_sessions.taken(kitchen.tools.records)
    return [one for one in next_sessions.sessions_of(kitchen.tools.records) if one.session not in gone]


def begin(kitchen: Any, **more: Any) -> dict[str, Any]:
    body = {"op_id": new_id(kitchen.utc_ns), "recipe": "fresh_lemonade", **more}
    answer = kitchen.tablet.post("/api/v1/recordings", json=body)
    assert answer.status_code == 200, answer.text
    bundle: dict[str, Any] = answer.json()
    return bundle


def plan_all_proposed(kitchen: Any, bundle: dict[str, Any]) -> None:
    """What *Suggest errors* on the tablet does."""
    for hint in bundle["suggested"]:
        fields = {"node": hint["node"], "categories": [KINDS_IN_TURN.index(hint["category"])]}
        body = {"error_id": new_id(kitchen.utc_ns), "fields": fields}
        (receipt,) = kitchen.post(kitchen.operation(bundle["recording"], "plan_error", body))
        assert "error" not in receipt


def end(kitchen: Any, folder: str, frozen: dict[str, Any], start: datetime) -> None:
    """Leave the folder of a recording as capture does, as if its session had been at its time."""
    write_manifest(kitchen.data / folder, {}, {})
    with edit_manifest(kitchen.data / folder) as manifest:
        manifest |= {"state": "complete", "pseudonym": "Basil", "place": "Lab kitchen"}
        manifest["recipe"] = {"name": frozen["name"], "order": frozen["order"]}
        manifest["script"] = {"strategy": frozen["strategy"], "display": frozen["display"]}
        manifest["started"] = {"utc_ns": int(start.timestamp() * 1e9), "host_ns": 1}


@pytest.mark.slow
def test_a_planned_session_is_given_its_script_and_the_next_plan_knows_it(kitchen: Any) -> None:
    assert kitchen.basil
    coming = plan_at_the_desk(kitchen, 2)
    told = {}
    for one in coming:
        kitchen.record(one.session)
        wrong = {"seed": 5, "strategy": "normal", "missing": 0, "flips": 1}
        bundle = begin(kitchen, session=one.session, folder=one.session, **wrong)
        frozen = bundle["ops"][0]["body"]
        assert (frozen["seed"], frozen["strategy"]) == (one.entry.seed, one.entry.strategy)
        if one.entry.strategy == "induced":
            assert one.entry.category in {hint["category"] for hint in bundle["suggested"]}
            plan_all_proposed(kitchen, bundle)
        again = kitchen.tablet.get(f"/api/v1/bundle/{bundle['recording']}").json()
        assert again["suggested"] == bundle["suggested"]
        end(kitchen, one.session, frozen, one.entry.start)
        told[one.session] = one.entry.script
    cooked = as_cooked(kitchen.data, cooked_below(kitchen.data)[0])
    assert {one.path: one.script for one in cooked if one.path in told} == told
    new = plan_at_the_desk(kitchen, 4)
    assert len({*told.values(), *(one.entry.script for one in new)} - {""}) == 8


@pytest.mark.slow
def test_without_a_seed_the_server_draws_one_and_keeps_it(kitchen: Any) -> None:
    first, second = (begin(kitchen)["ops"][0]["body"] for _ in range(2))
    assert first["seed"] != second["seed"]
    address = "/api/v1/recipes/fresh_lemonade/order"
    assert kitchen.tablet.get(f"{address}?seed={first['seed']}").json()["order"] == first["order"]
    shown = kitchen.tablet.get(address).json()
    assert shown["seed"] != kitchen.tablet.get(address).json()["seed"]
    assert begin(kitchen, seed=shown["seed"])["ops"][0]["body"]["order"] == shown["order"]


@pytest.mark.slow
def test_a_session_of_a_plan_without_seeds_is_drawn_by_the_server(kitchen: Any) -> None:
    now = datetime.fromtimestamp(kitchen.utc_ns / 1e9, UTC)
    said = {"recipe": "fresh_lemonade", "strategy": "disordered", "display": "steps", "person": "Basil"}
    said |= {"kitchen": "Lab kitchen", "minutes": 60}
    starts = [(now + timedelta(hours=hours)).isoformat() for hours in (1, 3)]
    body = {"schema": "study-plan/1", "sessions": [{**said, "start": start} for start in starts]}
    assert kitchen.desk("operator").post("/api/v1/desk/plan", json=body).status_code == 200
    sessions = next_sessions.sessions_of(kitchen.tools.records)
    seeds = {begin(kitchen, session=one.session, seed=5)["ops"][0]["body"]["seed"] for one in sessions}
    assert (len(seeds), 5 in seeds) == (2, False)


@pytest.mark.slow
@pytest.mark.parametrize("planned_session", [True, False])
def test_a_request_that_is_sent_again_finds_its_recording_and_its_seed(
    kitchen: Any, planned_session: bool
) -> None:
    assert kitchen.basil
    more = {"session": plan_at_the_desk(kitchen, 1)[0].session} if planned_session else {}
    op_id = new_id(kitchen.utc_ns)
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(begin, kitchen, op_id=op_id, **more) for _ in range(4)]
        bundles = [one.result() for one in asked]
    bundles.append(begin(kitchen, op_id=op_id, **more))
    ops = [op for op in kitchen.tools.records.ops(op_id) if op["kind"] == "recording"]
    assert len(ops) == 1
    assert {one["ops"][0]["body"]["seed"] for one in bundles} == {ops[0]["body"]["seed"]}

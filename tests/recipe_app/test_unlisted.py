"""Recordings that no tablet began are put into the list at the desk, once, with what was cooked and by whom."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from browser import at_the_desk
from screens import fit_to_be_shown

from kitchensync.recipe_app.store import tables
from kitchensync.storage.manifest import edit_manifest, write_json

NAMED = re.compile(r'<option value="([^"]*)"[^>]*>(?:[^<]* · )?[^<]*</option>')
ADDRESS = "/api/v1/desk/unlisted"
TOMBSTONE = {"schema": "recording/1", "recording": "destroyed", "uuid": "u", "withdrawn": {"utc_ns": 1}}
"""What is left of a recording that was destroyed."""
LAST_STEP_FIRST = {
    "steps": {"0": "START", "1": "Eat-Eat it", "2": "Cut-Cut it", "3": "END"},
    "edges": [[0, 2], [2, 1], [1, 3]],
}


@pytest.fixture
def sage(kitchen: Any) -> str:
    """Somebody who cooks, in a kitchen that is known."""
    assert kitchen.place
    return str(kitchen.tools.accounts.add_person("Sage", ["participant"], actor=""))


def offered(desk: Any) -> list[str]:
    """The folders that the list offers."""
    page = desk.get("/desk").text
    chosen = re.search(r'<select id="put-folder".*?</select>', page, re.DOTALL)
    return [name for name in NAMED.findall(chosen[0]) if name] if chosen else []


def asked(kitchen: Any, person: str, more: dict[str, str]) -> dict[str, Any]:
    return {"folder": "plain", "recipe": "yogurt_bowl", "person": person, "kitchen": kitchen.place} | more


def test_only_whole_recordings_that_are_not_listed_are_offered(kitchen: Any) -> None:
    kitchen.record("listed")
    kitchen.choose(folder="listed")
    for name, state, more in (
        ("listed", "complete", {}),
        ("older", "complete", {"started": {"utc_ns": 7}}),
        ("plain", "complete", {"started": {"utc_ns": 8}, "pseudonym": "Sage"}),
        ("runs", "recording", {}),
        ("burnt", "complete", {"abandoned": {"reason": "the pan burnt", "host_ns": 1}}),
        ("mine", "complete", {"withdrawn": {"utc_ns": 1}}),
        ("of_a_tablet", "complete", {"recipe": {"name": "yogurt_bowl"}}),
        ("_app_of_another", "complete", {}),
    ):
        kitchen.record(name, state)
        with edit_manifest(kitchen.data / name) as manifest:
            manifest |= more
    (kitchen.record("broken", "complete") / "recording.json").write_text("{")
    write_json(kitchen.record("destroyed") / "recording.json", TOMBSTONE)
    assert offered(kitchen.desk("operator")) == ["plain", "older"]


def test_one_that_is_put_in_is_cooked_by_that_person_and_stands_in_its_folder(
    kitchen: Any, sage: str
) -> None:
    path = kitchen.record("plain", "complete")
    desk = kitchen.desk("operator")
    answer = desk.post(ADDRESS, json=asked(kitchen, sage, {"strategy": "induced"}))
    recording = answer.json()["recording"]
    state = kitchen.tools.records.state(recording)
    row = kitchen.tools.records.rows(tables.recording)[0]
    assert (row["id"], row["folder"], row["person"], row["phase"]) == (recording, "plain", sage, "done")
    assert (row["recipe"], row["strategy"], row["steps_done"]) == ("yogurt_bowl", "induced", 0)
    manifest = kitchen.manifest("plain")
    assert (manifest["pseudonym"], manifest["place"]) == ("Sage", "Lab kitchen")
    assert manifest["recipe"]["order"] == state["recording"]["order"] == sorted(state["recording"]["order"])
    assert manifest["script"]["strategy"] == "induced"
    assert "consent" not in manifest
    assert [event["kind"] for event in kitchen.events(path, "tablet_late")] == ["recipe", "finish"]
    assert kitchen.tools.judge.against(row) is None, "nobody touched a step"
    assert offered(desk) == []
    again = desk.post(ADDRESS, json=asked(kitchen, sage, {}))
    assert again.status_code == 409
    assert "in the list already" in again.json()["error"]


def test_it_is_as_old_as_its_folder_and_its_order_is_that_of_the_text(kitchen: Any, tmp_path: Path) -> None:
    kitchen.recipes = tmp_path / "recipes"
    kitchen.recipes.mkdir()
    (kitchen.recipes / "meal.json").write_text(json.dumps(LAST_STEP_FIRST))
    sage = kitchen.tools.accounts.add_person("Sage", ["participant"], actor="")
    newest = str(kitchen.choose(recipe="meal")["recording"])
    kitchen.record("plain", "complete")
    with edit_manifest(kitchen.data / "plain") as manifest:
        manifest["started"] = {"utc_ns": kitchen.utc_ns - 10**15}
    desk = kitchen.desk("operator")
    recording = desk.post(ADDRESS, json=asked(kitchen, sage, {"recipe": "meal"})).json()["recording"]
    assert kitchen.manifest("plain")["recipe"]["order"] == [1, 2]
    assert kitchen.tools.records.frozen(recording)["order"] == [1, 2]
    rows = kitchen.tools.records.rows(tables.recording, order=tables.recording.c.created_utc_ns)
    assert [row["id"] for row in rows] == [recording, newest]


def test_nothing_is_written_into_what_is_taken_back_meanwhile(kitchen: Any) -> None:
    path = kitchen.record("plain", "complete")
    for state in ({"withdrawn": {"host_ns": 1}}, {"abandoned": {"reason": "burnt"}}):
        kitchen.record("plain", "complete")
        with edit_manifest(path) as manifest:
            manifest |= state
        before = kitchen.manifest("plain")
        kitchen.tools.folders.put("plain", {"pseudonym": "Sage"})
        assert kitchen.manifest("plain") == before
    write_json(path / "recording.json", TOMBSTONE)
    before = kitchen.manifest("plain")
    kitchen.tools.folders.put("plain", {"pseudonym": "Sage"})
    assert kitchen.manifest("plain") == before
    assert kitchen.desk("operator").get("/api/v1/desk/room").status_code == 200


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"folder": "nowhere"}, "no recording 'nowhere'"),
        ({"folder": "../plain"}, "no recording"),
        ({"folder": "burnt"}, "not a whole recording"),
        ({"folder": "of_another"}, "says Thyme"),
        ({"recipe": "nothing"}, "nothing"),
        ({"person": "nobody"}, "no participant"),
        ({"kitchen": "none"}, "no kitchen"),
        ({"strategy": "disordered"}, "strategy"),
    ],
)
def test_what_cannot_be_put_in_is_refused_and_changes_nothing(
    kitchen: Any, sage: str, wrong: dict[str, str], said: str
) -> None:
    for name, more in (
        ("plain", {}),
        ("of_another", {"pseudonym": "Thyme"}),
        ("burnt", {"abandoned": {"reason": "x"}}),
    ):
        kitchen.record(name, "complete")
        with edit_manifest(kitchen.data / name) as manifest:
            manifest |= more
    before = {name: kitchen.manifest(name) for name in ("plain", "of_another", "burnt")}
    answer = kitchen.desk("operator").post(ADDRESS, json=asked(kitchen, sage, wrong))
    assert answer.status_code in (404, 409, 422), answer.text
    assert said in answer.text
    assert {name: kitchen.manifest(name) for name in before} == before
    assert kitchen.tools.records.rows(tables.recording) == []


@pytest.mark.promise("What was recorded without a tablet is put into the list")
@pytest.mark.slow
def test_the_list_puts_in_what_today_leads_to(kitchen: Any, sage: str, browser: Any) -> None:
    kitchen.record("older", "complete")
    kitchen.record("plain", "complete")
    with edit_manifest(kitchen.data / "plain") as manifest:
        manifest |= {"pseudonym": "Sage", "place": "Lab kitchen"}
    page = at_the_desk(browser, kitchen.url, kitchen.desk("operator").headers["x-kitchensync-login"]).page
    page.goto(f"{kitchen.url}/desk?unlisted=plain#unlisted")
    assert page.locator("#put-folder").input_value() == "plain"
    assert page.locator("#put-person").input_value() == sage
    page.locator("#put-recipe").select_option("yogurt_bowl")
    fit_to_be_shown(page)
    page.get_by_role("button", name="Put into the list").click()
    page.get_by_role("link", name="Yogurt bowl").wait_for()
    assert page.get_by_text("1 recording made without a tablet").is_visible()

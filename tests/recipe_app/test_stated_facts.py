"""What is stated at the desk of recipes and participants: entered, counted in statistics, nobody named."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import made_data_sets
import pytest
from browser import at_the_desk, chromium
from click.testing import CliRunner

from kitchensync.cli import main
from kitchensync.dataset.checks.check import check
from kitchensync.recipe_app.exchange.stated_facts import stated_of
from kitchensync.recipe_app.store import oplog, projections
from kitchensync.recipe_app.web.door.access import LOGIN_HEADER


def test_facts_and_bands_are_counted_the_latest_wins_and_nobody_is_named(kitchen: Any) -> None:
    researcher, records = kitchen.desk("researcher"), kitchen.tools.records
    recipe = "/api/v1/desk/recipes/tea_and_toast/facts"
    assert researcher.post(recipe, json={"heating": "stove"}).status_code == 200
    said = {"heating": "kettle,  toaster, kettle", "skills": "pouring", "tools": ""}
    assert researcher.post(recipe, json=said).json()["heating"] == ["kettle", "toaster"]
    clove = kitchen.tools.accounts.add_person("Clove", ["participant"], actor="")
    for person, age in ((kitchen.basil, "25-34"), (clove, "65+"), (clove, "")):
        answer = researcher.post("/api/v1/desk/bands", json={"person": person, "age": age, "cooks": ""})
        assert answer.status_code == 200, answer.text
    recipes = [("tea_and_toast", "Tea and toast"), ("soup", "Soup")]
    lines = stated_of(records, recipes, ["Basil", "Clove", "Basil"])
    facts = {"heating": ["kettle", "toaster"], "skills": ["pouring"], "tools": []}
    unsaid = {key: {"not said": 2} for key in ("cooks", "gender", "hand")}
    assert lines == [
        {"kind": "recipe", "recipe": "Tea and toast", **facts},
        {"kind": "participants", "persons": 2, "age": {"25-34": 1, "not said": 1}, **unsaid},
    ]
    assert stated_of(records, [("soup", "Soup")], ["Clove"]) == []  # taken back is not said
    for wrong in ({"person": clove, "age": "33"}, {"person": "nobody"}):
        assert researcher.post("/api/v1/desk/bands", json=wrong).status_code in (404, 422)
    with records.database.writing() as connection:
        projections.rebuild(connection)
    with records.database.reading() as connection:
        assert oplog.first_fault(connection) is None


def test_the_shelf_at_the_desk_is_filtered_by_facts(kitchen: Any) -> None:
    researcher = kitchen.desk("researcher")
    for name, tools in (("tea_and_toast", "kettle, knife"), ("yogurt_bowl", "knife, bowl")):
        address = f"/api/v1/desk/recipes/{name}/facts"
        assert researcher.post(address, json={"tools": tools, "heating": "", "skills": ""}).status_code == 200

    def shown(**asked: str) -> set[str]:
        page = researcher.get("/desk/recipes", params=asked)
        assert page.status_code == 200
        return set(re.findall(r'name="chosen" value="(\w+)"', page.text))

    everything = shown()
    assert len(everything) > 2
    assert shown(tools="knife") == {"tea_and_toast", "yogurt_bowl"}
    assert shown(tools="kettle") == shown(tools="kettle", q="tea") == {"tea_and_toast"}
    assert shown(tools="kettle", q="yogurt") == shown(heating="kettle") == set()
    assert shown(tools="") == everything
    assert "<option selected>bowl</option>" in researcher.get("/desk/recipes?tools=bowl").text


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_pages_take_what_is_stated_and_show_it_again(kitchen: Any) -> None:
    login = kitchen.desk("admin").headers[LOGIN_HEADER]
    assert kitchen.basil
    with chromium() as browser:
        page = at_the_desk(browser, kitchen.url, login).page
        page.goto(f"{kitchen.url}/desk/recipes/tea_and_toast")
        page.locator("#facts summary").click()
        page.get_by_label("Heated with").fill("kettle, toaster")
        form = page.locator("form[data-send$=facts]")
        with page.expect_navigation():
            form.get_by_role("button", name="Save").click()
        assert page.get_by_label("Heated with").input_value() == "kettle, toaster"
        page.goto(f"{kitchen.url}/desk/people")
        page.locator("#bands summary").click()
        page.locator("#person").select_option(label="Basil")
        page.get_by_label("Age", exact=True).select_option("25-34")
        page.get_by_label("Cooks", exact=True).select_option("every week")
        with page.expect_navigation():
            page.locator("form[data-send$=bands]").get_by_role("button", name="Save").click()
    lines = stated_of(kitchen.tools.records, [("tea_and_toast", "Tea")], ["Basil"])
    assert lines[0]["heating"] == ["kettle", "toaster"]
    assert (lines[1]["age"], lines[1]["cooks"]) == ({"25-34": 1}, {"weekly": 1})


def test_statistics_count_what_was_stated_and_the_check_takes_it(tmp_path: Path) -> None:
    stated = [
        {
            "kind": "recipe",
            "recipe": "Tea",
            "heating": ["kettle"],
            "skills": ["pouring", "boiling"],
            "tools": [],
        },
        {"kind": "participants", "persons": 3, "age": {"25-34": 2, "not said": 1}, "cooks": {"weekly": 3}},
    ]
    folder = made_data_sets.own_data_set(tmp_path / "set", films=False, stated=stated)
    assert check(folder).differences == []
    page = tmp_path / "page.html"
    done = CliRunner().invoke(main, ["release", "stats", str(folder), "--json", "--html", str(page)])
    assert json.loads(done.stdout)["stated"] == {
        "recipes by heating": {"kettle": 1},
        "recipes by skills": {"boiling": 1, "pouring": 1},
        "participants by age": {"25-34": 2, "not said": 1},
        "participants by cooking": {"weekly": 3},
    }
    assert "Recipes by heating" in page.read_text()

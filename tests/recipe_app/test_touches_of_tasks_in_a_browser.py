"""The commonest tasks of a cook take as many touches as the page about the tablet says, counted at the glass."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from browser import Tablet, on_screen
from rigs import Rig
from screens import serious

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "tablet.md"
GRAPH = {
    "steps": {"0": "START", "1": "Boil-Boil it for 2 minutes", "2": "Cut-Cut it", "3": "Eat-Eat it", "4": "END"},
    "edges": [[0, 1], [0, 2], [1, 3], [2, 3], [3, 4]],
}  # fmt: skip


def promised() -> dict[str, int]:
    """The table of the page: task -> touches, sections of the checklist not counted."""
    rows = re.findall(r"^\| (.+?) \| (\d+)(?: and .*)? \|$", PAGE.read_text(), re.MULTILINE)
    return {task: int(count) for task, count in rows}


@contextmanager
def counted(tablet: Tablet, found: dict[str, int], task: str) -> Iterator[None]:
    """Count the contacts of a task; the page is loaded once, so that nothing is forgotten."""
    before = tablet.page.evaluate("(window.touches ??= []).length")
    yield
    found[task] = tablet.page.evaluate("window.touches.length") - before
    tablet.rest()


def test_the_ten_commonest_tasks(kitchen: Any, browser: Any, tmp_path: Path) -> None:
    kitchen.recipes = tmp_path / "recipes"
    kitchen.recipes.mkdir()
    (kitchen.recipes / "meal.json").write_text(json.dumps(GRAPH))
    kitchen.__dict__["tools"] = dataclasses.replace(kitchen.tools, capture=Rig(kitchen))
    kitchen.record("soup_1", "stopped")  # nobody else's is there to be joined
    assert kitchen.tools.accounts.add_person("Clove", ["participant"], actor="")
    found: dict[str, int] = {}
    with on_screen(kitchen, browser) as tablet:
        page = tablet.page
        tap: Callable[..., None] = tablet.tap
        with counted(tablet, found, "from the list of recipes to cooking"):
            page.locator("#recipes").get_by_role("button", name="Meal").click()
            tablet.screen("recipe")
            assert page.get_by_label("With headset and GoPro").is_checked()
            tap("Begin", exact=True)
            tablet.instructed()
            tablet.screen("checklist")
            for section in ("The person who cooks", "The kitchen", "The devices"):
                tap(f"All of these: {section}")
            assert page.locator("[data-key=consent]").get_attribute("aria-checked") == "false"
            page.locator("[data-key=consent]").click()
            assert {
                one.get_attribute("aria-checked") for one in page.locator("[data-key^=scope-]").all()
            } == {"false"}
            page.get_by_role("group", name="A second person").get_by_role("button", name="Clove").click()
            assert serious(page) == []
            page.locator("#start:enabled").click()
            tablet.screen("follow")
        found["from the list of recipes to cooking"] -= 3  # one for each section
        tap("Begin", exact=True)
        tablet.rest()
        with counted(tablet, found, "begin a second step beside it"):
            tap("Begin too")
            page.locator(".open-step").nth(1).wait_for()
        with counted(tablet, found, "log an error of the step that is open"):
            tap("Error", exact=True)
            tap("Timing")
        with counted(tablet, found, "log an error of another step that is open"):
            tap("Error", exact=True)
            page.get_by_role("group", name="At which step?").get_by_role("button").nth(1).click()
            tap("Technique")
        with counted(tablet, found, "take the last touch back"):
            tap("Undo", exact=True)
        with counted(tablet, found, "start a timer of the step"):
            page.locator(".timer-chip").first.click()
            page.locator(".running-timer").wait_for()
        with counted(tablet, found, "let a step wait"):
            tap("Pause", exact=True)
            tap("Pause this step")
        with counted(tablet, found, "begin a private part"):
            tap("Pause", exact=True)
            page.get_by_role("dialog").get_by_role("button").nth(1).click()
            page.locator(".cover").wait_for()
        page.get_by_role("button", name="Go on", exact=True).last.click()
        page.locator(".cover").wait_for(state="hidden")
        tablet.rest()
        with counted(tablet, found, "finish a step, the next begins"):
            page.locator("footer .done").click()
        for _ in range(3):
            if page.get_by_text("To the review").count():
                break
            page.locator("footer .done").click()
            tablet.rest()
        with counted(tablet, found, "end, when every step is done"):
            tap("To the review")
            tap("Yes, to the review")
            tablet.screen("review")
        tablet.saved()
    assert found == promised()


def test_the_last_second_person_and_display_are_offered_first(kitchen: Any, browser: Any) -> None:
    for name in ("Anise", "Clove", "Dill"):
        assert kitchen.tools.accounts.add_person(name, ["participant"], actor="")
    with on_screen(kitchen, browser) as tablet:
        page = tablet.page
        tablet.begin("Tea and toast", display="paragraph")
        tablet.screen("checklist")
        people = page.get_by_role("group", name="A second person").get_by_role("button")
        people.first.wait_for()
        assert [one.inner_text() for one in people.all()] == [
            "Anise",
            "Clove",
            "Dill",
        ]  # and not Basil, who cooks
        for box in page.get_by_role("checkbox").all():
            box.click()
        people.nth(1).click()
        page.locator("#start:enabled").click()
        tablet.screen("follow")
        page.goto(f"{tablet.url}/t/choose")
        tablet.screen("choose")
        page.locator("#recipes").get_by_role("button", name="Yogurt bowl").click()
        tablet.screen("recipe")
        assert page.locator('input[name="display"][value="paragraph"]').is_checked()
        tablet.tap("Begin", exact=True)
        tablet.instructed()
        tablet.screen("checklist")
        people.first.wait_for()
        assert people.first.inner_text() == "Clove"
        assert people.first.get_attribute("aria-pressed") == "false"  # who looked this time says so this time

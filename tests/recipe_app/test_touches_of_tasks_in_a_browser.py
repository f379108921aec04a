"""The commonest tasks of a cook take as many touches as the page about the tablet says, counted at the glass."""

from __future__ import annotations

import dataclasses
import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from browser import Tablet, at_the_desk, on_screen
from rigs import Rig
from screens import serious

from kitchensync.recipe_app.store.app_records import new_id

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "tablet.md"
RECIPES = PAGE.parents[2] / "kitchensync" / "examples" / "recipes"
GRAPH = {
    "steps": {"0": "START", "1": "Boil-Boil it for 2 minutes", "2": "Cut-Cut it", "3": "Eat-Eat it", "4": "END"},
    "edges": [[0, 1], [0, 2], [1, 3], [2, 3], [3, 4]],
}  # fmt: skip


def promised(about: str) -> dict[str, int]:
    """A table of the page, by the head of its first column: task -> touches, without sections of the checklist."""
    table = PAGE.read_text().partition(f"| {about} | touches |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| (.+?) \| (\d+)(?: and .*)? \|$", table, re.MULTILINE)
    return {task: int(count) for task, count in rows}


def told(found: dict[str, int], seconds: dict[str, float]) -> None:
    """Print what each task took: touches as counted at the glass, seconds of a program that does not think."""
    print()
    for task, count in found.items():
        print(f"{count:3} touches {seconds[task]:6.1f} s  {task}")


@contextmanager
def timed(tablet: Tablet, found: dict[str, int], seconds: dict[str, float], task: str) -> Iterator[None]:
    """Count the contacts of a task; the page is loaded once, so that nothing is forgotten."""
    before, begun_s = tablet.page.evaluate("(window.touches ??= []).length"), time.monotonic()
    yield
    found[task] = tablet.page.evaluate("window.touches.length") - before
    seconds[task] = time.monotonic() - begun_s
    tablet.rest()


def test_the_ten_commonest_tasks(kitchen: Any, browser: Any, tmp_path: Path) -> None:
    kitchen.recipes = tmp_path / "recipes"
    kitchen.recipes.mkdir()
    (kitchen.recipes / "meal.json").write_text(json.dumps(GRAPH))
    kitchen.__dict__["tools"] = dataclasses.replace(kitchen.tools, capture=Rig(kitchen))
    kitchen.record("soup_1", "stopped")  # nobody else's is there to be joined
    assert kitchen.tools.accounts.add_person("Clove", ["participant"], actor="")
    found: dict[str, int] = {}
    seconds: dict[str, float] = {}
    with on_screen(kitchen, browser) as tablet:
        page = tablet.page
        tap: Callable[..., None] = tablet.tap

        def counted(task: str) -> AbstractContextManager[None]:
            return timed(tablet, found, seconds, task)

        with counted("from the list of recipes to cooking"):
            page.locator("#recipes").get_by_role("button", name="Meal").click()
            tablet.screen("recipe")
            assert page.get_by_label("With headset and GoPro").is_checked()
            tap("Begin", exact=True)
            tablet.instructed()
            tablet.screen("checklist")
            for group in ("person", "room", "devices"):
                page.locator(f'[data-key="all-{group}"]').click()
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
        with counted("log an error of the step that is open"):
            tap("Error", exact=True)
            tap("Timing")
        tablet.rest()
        with counted("begin a second step beside it"):
            tap("Begin too")
            page.locator(".open-step").nth(1).wait_for()
        with counted("log an error of one of two steps that are open"):
            tap("Error", exact=True)
            page.get_by_role("group", name="At which step?").get_by_role("button").nth(1).click()
            tap("Technique")
        with counted("take the last touch back"):
            tap("Undo")
        with counted("start a timer of the step"):
            page.locator(".timer-chip").first.click()
            page.locator(".running-timer").wait_for()
        with counted("let a step wait"):
            tap("Pause", exact=True)
            tap("Pause this step")
        with counted("begin a private part"):
            tap("Pause", exact=True)
            page.get_by_role("dialog").get_by_role("button").nth(1).click()
            page.locator(".cover").wait_for()
        page.get_by_role("button", name="Go on", exact=True).last.click()
        page.locator(".cover").wait_for(state="hidden")
        tablet.rest()
        with counted("finish a step, the next begins"):
            page.locator("footer .done").click()
        for _ in range(3):
            if page.get_by_text("To the review").count():
                break
            page.locator("footer .done").click()
            tablet.rest()
        with counted("end, when every step is done"):
            tap("To the review")
            tap("Yes, to the review")
            tablet.screen("review")
        tablet.saved()
    told(found, seconds)
    assert found == promised("task")


class AdminAtWork:
    """An admin at the desk: every contact is counted, from page to page.

    At the document, where one does not come that Playwright takes back because what it aimed at has moved.
    """

    def __init__(self, kitchen: Any, browser: Any) -> None:
        desk = at_the_desk(browser, kitchen.url, kitchen.desk("admin").headers["x-kitchensync-login"])
        self.page, self.touches = desk.page, 0
        self.found: dict[str, int] = {}
        self.seconds: dict[str, float] = {}
        self.page.context.expose_function("touched", self._touched)
        self.page.context.add_init_script(
            "document.addEventListener('pointerdown', () => window.touched(), true)"
        )
        self.desk = desk

    def _touched(self) -> None:
        self.touches += 1

    @contextmanager
    def task(self, name: str) -> Iterator[None]:
        """Begin at the page of recordings."""
        self.desk.go()
        self.touches, begun_s = 0, time.monotonic()
        yield
        self.found[name], self.seconds[name] = self.touches, time.monotonic() - begun_s

    def tap(self, name: str, role: str = "button") -> None:
        self.page.get_by_role(role, name=name, exact=True).first.click()

    def type(self, label: str, text: str) -> None:
        field = self.page.get_by_label(label, exact=True).first
        field.click()
        self.page.keyboard.press("Control+a")
        self.page.keyboard.type(text)

    def pick(self, label: str, choice: str) -> None:
        """Choose from a list: a touch opens it, another one chooses; the browser draws it, and no page sees that."""
        self.page.get_by_label(label, exact=True).first.select_option(label=choice)
        self.touches += 2


def test_the_commonest_tasks_of_an_admin(kitchen: Any, browser: Any) -> None:
    kitchen.recipes = RECIPES
    recording = str(kitchen.choose(strategy="induced")["recording"])
    fields = {"node": 5, "categories": [3], "description": "too long"}
    made = kitchen.operation(recording, "plan_error", {"error_id": new_id(1), "fields": fields})
    kitchen.post(made, kitchen.operation(recording, "claim", {}))
    admin = AdminAtWork(kitchen, browser)
    page, tap = admin.page, admin.tap
    with admin.task("add a participant with a PIN"):
        tap("Setup", "link")
        free = page.locator("#pseudonym").input_value()
        page.locator("#pin").click()
        page.keyboard.type("482917")
        tap("Add a person")
        page.get_by_role("dialog").wait_for(state="hidden")
        page.get_by_role("cell", name=free).wait_for()
    with admin.task("make a QR card for somebody"):
        tap("Setup", "link")
        tap("QR card")
        page.locator("dialog[open] #result-qr svg, dialog[open] #result-qr canvas").first.wait_for()
    with admin.task("add a kitchen and make a pairing code"):
        tap("Setup", "link")
        tap("Kitchens and tablets", "link")
        admin.type("Name", "Kitchen 9")
        tap("Add a kitchen")
        page.get_by_role("heading", name="Kitchen 9").wait_for()
        tap("Pair a tablet")
        admin.desk.secret()
    with admin.task("find the recordings of a recipe and open one"):
        admin.type("Search", "toast")
        tap("Show")
        page.wait_for_url("**q=toast*")
        tap("Tea and toast", "link")
        page.wait_for_url(f"**/recordings/{recording}")
    with admin.task("verify all recordings of a page"):
        page.get_by_label("All of this page").click()
        tap("Do it")
        page.locator("#batch-progress tr[data-state=refused]").wait_for()
    with admin.task("see what was agreed to of all recordings of a page"):
        page.get_by_label("All of this page").click()
        admin.pick("What", "See what was agreed to")
        tap("Do it")
        page.locator("tr[data-recording]").wait_for()
    with admin.task("write a recipe as text and keep it"):
        tap("Recipes", "link")
        admin.type("Name", "Porridge")
        page.locator("#words").click()
        page.keyboard.insert_text(
            "Porridge\n\nBoil 200 ml of water.\nAdd 50 g of oats.\nStir for 3 minutes.\n"
        )
        tap("Write a recipe here")
        page.locator("#preview .lines li").first.wait_for()
        tap("Keep these steps")
        page.get_by_role("link", name="Porridge").wait_for()
    with admin.task("draw a wrong order of a recipe to print"):
        tap("Recipes", "link")
        tap("Tea and toast", "link")
        admin.pick("What is this session for?", "Disordered steps")
        tap("Draw it")
        page.locator(".script .words").first.wait_for()
    with admin.task("change the kind of an error"):
        tap("Tea and toast", "link")
        error = page.locator("details.error").first
        error.locator("summary").click()
        error.get_by_label("Timing").click()
        error.get_by_label("Technique").click()
        error.get_by_role("button", name="Save").click()
        error.locator("summary .badge", has_text="Technique").wait_for()
    with admin.task("remove an error, and put it back"):
        tap("Tea and toast", "link")
        error.locator("summary").click()
        error.get_by_role("button", name="Remove").click()
        tap("Undo")
        page.get_by_role("tab", name="Errors 1").wait_for()
    with admin.task("free a recording from its tablet"):
        tap("Tea and toast", "link")
        tap("Devices", "tab")
        tap("Take it from the tablet")
        page.get_by_text("Held by").wait_for(state="detached")
    told(admin.found, admin.seconds)
    assert admin.desk.problems == []
    assert admin.found == promised("at the desk")
    page.context.close()


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

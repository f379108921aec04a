"""What is done before and after cooking is taken back by one touch, in a real browser; and hints are counted."""

from __future__ import annotations

from typing import Any

import pytest
from browser import Tablet
from screens import serious

pytestmark = pytest.mark.timeout(240)


def test_each_change_of_a_plan_and_of_a_review_can_be_taken_back(kitchen: Any, tablet: Tablet) -> None:
    page = tablet.page
    recording = tablet.begin("Tea and toast", strategy="induced")
    cards, undo = page.locator(".step-card.has-error"), page.locator("#undo")
    assert not undo.is_visible()
    tablet.tap("Suggest a balanced set")
    cards.nth(2).wait_for()
    suggested = cards.count()
    tablet.rest()
    tablet.tap("Remove", exact=True)
    cards.nth(suggested - 1).wait_for(state="detached")
    undo.click()
    cards.nth(suggested - 1).wait_for()
    assert not undo.is_visible()
    tablet.rest()
    tablet.tap("Suggest a balanced set")  # everything is there: nothing to take back
    tablet.rest()
    assert not undo.is_visible()
    page.reload()
    tablet.tap("Remove", exact=True)
    cards.nth(suggested - 1).wait_for(state="detached")
    tablet.tap("Suggest a balanced set")
    cards.nth(suggested - 1).wait_for()
    tablet.checklist()
    tablet.screen("follow")
    page.goto(f"{tablet.url}/t/rec/{recording}/review")
    tablet.tap("As planned", exact=True)
    pressed = page.locator(".outcomes [aria-pressed=true]")
    pressed.first.wait_for()
    undo.click()
    pressed.first.wait_for(state="detached")
    page.locator("#note").fill("The butter was cold")
    tablet.tap("Keep the remark")
    page.locator("li", has_text="The butter was cold").wait_for()
    tablet.rest()
    undo.click()
    page.locator("li", has_text="The butter was cold").wait_for(state="detached")
    assert serious(page) == []
    tablet.saved()
    state = kitchen.tools.records.state(recording)
    assert (state["notes"], state["redo"], len(state["errors"])) == ([], [], suggested + 1)
    assert {error["outcome"] for error in state["errors"].values()} == {""}


def test_a_balanced_set_is_taken_back_at_once_and_hints_are_counted(kitchen: Any, tablet: Tablet) -> None:
    page = tablet.page
    recording = tablet.begin("Tea and toast", strategy="induced")
    cards = page.locator(".step-card.has-error")
    tablet.tap("Suggest a balanced set")
    cards.first.wait_for()
    assert cards.count() > 2  # each is two entries: more than one undo takes back
    page.locator("#undo").click()
    cards.first.wait_for(state="detached")
    for _ in range(2):  # what is offered twice was shown once
        tablet.tap("Plan an error")
        offered = page.locator(".hint-row").count()
        tablet.rest()
        tablet.tap("Cancel", exact=True)
        tablet.rest()
    tablet.tap("Plan an error")
    page.locator(".hint-row").first.click()
    tablet.tap("Save", exact=True)
    cards.first.wait_for()
    tablet.saved()
    assert kitchen.tools.records.state(recording)["hints"] == {"shown": offered, "applied": 1}

"""Kitchen timers on the glass: silent and seen from afar when they end, lengthened, paused, added."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from browser import on_screen, ops
from screens import close_boxes, serious, small_boxes

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
GRAPH = {
    "steps": {"0": "START", "1": "Wait-Wait for 3 seconds", "2": "Stir-Stir it", "3": "END"},
    "edges": [[0, 1], [1, 2], [2, 3]],
}
BACKGROUND = "getComputedStyle(document.querySelector('.follow')).backgroundColor"


def test_a_timer_that_ends_turns_the_whole_screen_and_can_go_on(
    kitchen: Any, browser: Any, tmp_path: Path
) -> None:
    kitchen.recipes = tmp_path / "recipes"
    kitchen.recipes.mkdir()
    (kitchen.recipes / "wait.json").write_text(json.dumps(GRAPH))
    with on_screen(kitchen, browser) as tablet:
        page = tablet.page
        recording = tablet.begin("Wait")
        tablet.checklist()
        tablet.begin_first_step(kitchen, recording)
        before = page.evaluate(BACKGROUND)
        page.locator(".timer-chip").first.click()
        page.locator(".follow.time-up").wait_for()
        assert page.evaluate(BACKGROUND) != before
        page.get_by_text("Time is up: step 1").wait_for()
        assert serious(page) == []
        assert small_boxes(page, 64) == []
        assert close_boxes(page, 16) == []
        tablet.rest()
        tablet.tap("+1 min")
        page.locator(".follow:not(.time-up)").wait_for()
        assert page.evaluate(BACKGROUND) == before
        tablet.rest()
        page.locator("[data-key=wait-1]").click()
        page.locator("[data-key=wait-1]", has_text="Go on").wait_for()
        left = page.locator(".running-timer .left").inner_text()
        page.wait_for_timeout(1500)
        page.reload()  # it waits there too
        tablet.screen("follow")
        assert page.locator(".running-timer .left").inner_text() == left
        page.locator("[data-key=wait-1]").click()
        page.locator("[data-key=wait-1]", has_text="Pause").wait_for()
        tablet.rest()
        page.locator(".running-timer").get_by_role("button", name="Stop").click()
        page.locator(".running-timer").wait_for(state="detached")

        page.locator("footer .done").click()  # the next step names no time
        page.locator('h1[data-node="2"]').wait_for()
        assert page.locator(".timer-chip").count() == 0
        tablet.tap("All steps")
        page.get_by_role("dialog").get_by_role("button", name="Timer", exact=True).click()
        assert serious(page) == []
        page.get_by_role("dialog", name="How long?").get_by_role(
            "button", name="5 minutes", exact=True
        ).click()
        page.locator(".running-timer").wait_for()
        tablet.saved()
        made = [
            (op["body"]["node"], op["body"]["action"], op["body"]["seconds"])
            for op in ops(kitchen, recording, "timer")
        ]
    assert made == [
        *((1, "start", 3), (1, "rang", 3), (1, "lengthen", 63), (1, "pause", 63), (1, "resume", 63)),
        *((1, "stop", 63), (2, "start", 300)),
    ]

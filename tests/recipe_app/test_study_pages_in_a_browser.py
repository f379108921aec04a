"""The plan and the coverage of a study, by keyboard, upright and wide: edited, refused to the second, looked at."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from browser import LANDSCAPE, PORTRAIT, at_the_desk
from screens import fit_to_be_shown

from kitchensync.recipe_app.study import next_sessions
from kitchensync.recipe_app.web.door.access import LOGIN_HEADER

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
STUDY = """goals = [{ recipe = "*", strategy = ["normal", "induced"], count = 2 }]
[study]
zone = "UTC"
begin = 2026-09-20
days = 14
[rules]
most_a_day = 1
[people.Basil]
hours = ["mon-sun 08:00-20:00"]
[kitchens.north]
hours = ["mon-sun 08:00-20:00"]
"""


def test_two_admins_edit_a_study_and_both_see_how_far_it_is(kitchen: Any, browser: Any) -> None:
    assert kitchen.basil
    desks = [at_the_desk(browser, kitchen.url, kitchen.desk("admin").headers[LOGIN_HEADER]) for _ in range(2)]
    for desk in desks:
        desk.go("/plan")
        desk.page.get_by_label("Study file").fill(STUDY)
    first, second = (desk.page for desk in desks)
    first.get_by_role("button", name="Save and plan").focus()
    with first.expect_navigation(timeout=60_000):
        first.keyboard.press("Enter")
    first.locator("#sessions").wait_for()
    fit_to_be_shown(first)
    second.get_by_role("button", name="Save and plan").press("Enter")
    second.get_by_text("somebody else changed the plan").wait_for(timeout=60_000)
    assert second.get_by_label("Study file").input_value() == STUDY  # nothing typed is lost
    assert next_sessions.kept_plan(kitchen.tools.records)[1]["study"].strip() == STUDY.strip()
    keep = os.environ.get("KITCHENSYNC_PICTURES")
    for name, size in (("wide", LANDSCAPE), ("upright", PORTRAIT)):
        first.set_viewport_size(size)
        for page in ("plan", "coverage"):
            first.goto(f"{kitchen.url}/desk/{page}")
            fit_to_be_shown(first)
            if keep:
                first.screenshot(path=Path(keep) / f"study-{page}-{name}.png", full_page=True)
    first.get_by_label("Person").focus()
    first.keyboard.press("Space")
    first.get_by_role("button", name="Show").press("Enter")
    first.get_by_role("checkbox", name="Person", checked=True).wait_for()

"""What is read before the first session: once a person, a recipe and a skill; again when it was changed."""

from __future__ import annotations

from typing import Any

import pytest
from browser import on_screen, ops
from screens import serious

from kitchensync.recipe_app.store.app_records import new_id

pytestmark = pytest.mark.slow

FACTS = {"heating": "", "tools": "", "ingredients": "", "minutes": ""}


def state(kitchen: Any, of: str, about: str, lines: str) -> None:
    body = {"of": of, "about": about, "lines": lines}
    assert kitchen.desk("researcher").post("/api/v1/desk/training", json=body).status_code == 200


def due(kitchen: Any, recipe: str) -> tuple[str, list[tuple[str, list[str]]], list[str]]:
    bundle = kitchen.choose(recipe=recipe, op_id=new_id(kitchen.utc_ns))
    found = [(one["about"], one["items"]) for one in bundle["training"]]
    return bundle["recording"], found, [one["version"] for one in bundle["training"]]


def test_each_training_is_due_until_it_was_seen_and_again_when_it_changed(kitchen: Any) -> None:
    desk = kitchen.desk("researcher")
    for recipe in ("tea_and_toast", "yogurt_bowl"):
        facts = {**FACTS, "skills": "knife, whisk" if recipe == "tea_and_toast" else "knife"}
        assert desk.post(f"/api/v1/desk/recipes/{recipe}/facts", json=facts).status_code == 200
    assert due(kitchen, "tea_and_toast")[1] == []
    state(kitchen, "recipe", "tea_and_toast", "Look at the toaster\n\n https://example.org/toast.mp4 \n")
    state(kitchen, "skill", "knife", "Fingers behind the blade")
    recording, found, versions = due(kitchen, "tea_and_toast")
    assert found == [
        ("tea_and_toast", ["Look at the toaster", "https://example.org/toast.mp4"]),
        ("knife", ["Fingers behind the blade"]),
    ]
    read = {"version": "1", "shown": "x", "training": versions}
    kitchen.post(kitchen.operation(recording, "instructed", read))
    assert due(kitchen, "tea_and_toast")[1] == due(kitchen, "yogurt_bowl")[1] == []  # the skill is known
    state(kitchen, "skill", "knife", "Fingers behind the blade\nA sharp one")
    assert due(kitchen, "yogurt_bowl")[1] == [("knife", ["Fingers behind the blade", "A sharp one"])]
    state(kitchen, "skill", "knife", "")
    assert due(kitchen, "yogurt_bowl")[1] == []


@pytest.mark.slow
def test_it_is_on_the_glass_before_the_first_session_only(kitchen: Any, browser: Any) -> None:
    state(kitchen, "recipe", "tea_and_toast", "Look at the toaster\nhttps://example.org/toast.mp4")
    with on_screen(kitchen, browser) as tablet:
        page = tablet.page
        page.locator("#recipes").get_by_role("button", name="Tea and toast").click()
        tablet.screen("recipe")
        tablet.tap("Begin", exact=True)
        tablet.screen("instructions")
        page.get_by_role("heading", name="Before your first time with this recipe").wait_for()
        link = page.get_by_role("link", name="https://example.org/toast.mp4")
        assert (link.get_attribute("target"), link.get_attribute("rel")) == ("_blank", "noopener noreferrer")
        assert serious(page) == []
        tablet.instructed()
        tablet.saved()
        recording = page.url.split("/")[-2]
        (read,) = ops(kitchen, recording, "instructed")
        assert len(read["body"]["training"]) == 1
        page.goto(f"{tablet.url}/t/choose")
        tablet.screen("choose")
        page.locator("#recipes").get_by_role("button", name="Tea and toast").click()
        tablet.screen("recipe")
        tablet.tap("Begin", exact=True)
        tablet.screen("instructions")
        assert page.get_by_text("Look at the toaster").count() == 0

"""Errors go to the step and the time they belong to: while cooking by one touch more, in the review by a form."""

from __future__ import annotations

from typing import Any

import pytest
from browser import on_screen, ops
from screens import serious, small_boxes

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def test_an_error_is_of_the_step_that_was_touched_and_the_review_changes_all_of_it(
    kitchen: Any, browser: Any
) -> None:
    with on_screen(kitchen, browser) as tablet:
        page = tablet.page
        recording = tablet.begin("Tea and toast")
        tablet.checklist()
        first, second, third = kitchen.tools.records.state(recording)["recording"]["order"][:3]
        tablet.begin_first_step(kitchen, recording)
        tablet.tap("Begin too")
        tablet.rest()
        tablet.tap("Error", exact=True)
        steps = page.get_by_role("group", name="At which step?").get_by_role("button")
        assert [one.get_attribute("aria-pressed") for one in steps.all()] == ["false", "false"], "it is asked"
        assert page.get_by_role("button", name="Timing").is_disabled()
        tablet.rest()
        steps.nth(1).click()
        assert [one.get_attribute("aria-pressed") for one in steps.all()] == ["false", "true"]
        assert serious(page) == []
        tablet.tap("Timing")
        page.get_by_role("dialog").wait_for(state="detached")
        tablet.saved()
        (made,) = ops(kitchen, recording, "error")
        assert made["body"]["fields"] == {"node": second, "categories": [3]}
        page.reload()
        undo = page.get_by_role("button", name="Undo")
        undo.get_by_text("Timing · Step 2").wait_for()  # named, however long ago it was
        undo.click()
        page.get_by_text("Taken back: Timing · Step 2").wait_for()
        tablet.saved()
        assert kitchen.tools.records.state(recording)["errors"] == {}
        tablet.rest()
        tablet.tap("Error", exact=True)
        page.get_by_role("group", name="At which step?").get_by_role("button").nth(1).click()
        tablet.tap("Timing")
        page.get_by_role("dialog").wait_for(state="detached")
        tablet.saved()
        made = ops(kitchen, recording, "error")[-1]

        tablet.end_early()
        tablet.screen("review")
        tablet.tap("Change", exact=True)
        form = page.get_by_role("dialog")
        form.get_by_label("Step", exact=True).select_option(str(first))
        form.get_by_role("button", name="Preparation").click()  # one is exchanged for the other
        assert form.get_by_role("button", name="Timing").get_attribute("aria-pressed") == "false"
        form.get_by_role("button", name="Timing").click()
        form.get_by_role("button", name="Several categories").click()
        form.get_by_role("button", name="Measurement").click()
        line = form.get_by_label("When:")
        box = line.bounding_box()
        page.mouse.click(box["x"] + 3, box["y"] + box["height"] / 2)  # where it begins
        assert line.input_value() == "0"
        form.get_by_role("button", name="by accident").click()
        form.get_by_role("button", name="by somebody else").click()
        form.get_by_label("Corrected by step").select_option(str(third))
        form.get_by_label("What is different").fill("too hot")
        right = kitchen.tools.records.state(recording)["recording"]["steps"][str(first)]["text"]
        form.get_by_label("What did you do instead?").fill(f" {right.upper()} ")
        assert small_boxes(page, 48) == []
        assert serious(page) == []
        form.get_by_role("button", name="Save").click()
        page.get_by_text("by accident").wait_for()
        tablet.saved()
        (error,) = kitchen.tools.records.state(recording)["errors"].values()
        assert (error["node"], error["categories"], error["description"]) == (first, [1, 3], "too hot")
        assert error["text"] == "", "the step as it should be is no error"
        assert (error["intent"], error["noticed"], error["corrected_by"]) == (
            "by_accident",
            "somebody_else",
            third,
        )
        begun = min(op["host_ns"] for op in ops(kitchen, recording, "start"))
        assert error["at"] == begun < made["host_ns"]
        kept = ops(kitchen, recording, "error")[-1]  # what was said first stays in the log
        assert kept["body"] == made["body"]

        tablet.tap("Change", exact=True)
        page.get_by_role("dialog").get_by_label("What is different").fill("much too hot")
        page.get_by_role("dialog").get_by_role("button", name="Save").click()
        page.get_by_text("much too hot").wait_for()
        tablet.saved()
        assert "at" not in ops(kitchen, recording, "edit_error")[-1]["body"]["fields"], "nobody moved it"

        tablet.tap("Add an error")
        page.get_by_role("dialog", name="At which step?").get_by_role("button", name="Back").click()
        page.get_by_role("dialog").wait_for(state="detached")
        tablet.rest()
        tablet.tap("Add an error")
        page.get_by_role("dialog").locator(
            ".hint-row"
        ).last.click()  # nobody touched it: it has no time to guess
        tablet.rest()
        form = page.get_by_role("dialog", name="Add an error")
        form.get_by_role("button", name="Technique").click()
        form.get_by_label("No time set: the error will have no time.").press("ArrowRight")
        form.get_by_text("When: 0:01.0").wait_for()
        form.get_by_role("button", name="Save").click()
        page.get_by_text("added afterwards").wait_for()
        tablet.saved()
        added = [one for one in kitchen.tools.records.state(recording)["errors"].values() if one["at"]]
        assert len(added) == 2

        tablet.tap("Voice note")
        page.wait_for_timeout(600)
        page.locator("#voice-stop").click()
        player = page.locator("audio")
        player.wait_for()
        tablet.saved()
        page.reload()  # its sound comes from the server
        player.evaluate(
            """(audio) => new Promise((resolve, reject) => {
                 audio.onended = resolve;
                 audio.onerror = () => reject(audio.error.message);
                 audio.muted = true;
                 audio.play().catch(reject);
               })"""
        )
        page.get_by_role("listitem").filter(has=player).get_by_role("button", name="Remove").click()
        player.wait_for(state="detached")
        tablet.saved()
        assert kitchen.tools.records.state(recording)["voices"] == []

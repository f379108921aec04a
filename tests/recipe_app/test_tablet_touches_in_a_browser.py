"""Touches while cooking, in a real browser: drops, wiping, pauses, undo and redo."""

from __future__ import annotations

import random
from typing import Any

import pytest
from browser import Tablet, on_screen, ops
from screens import serious, small_boxes

pytestmark = pytest.mark.timeout(240)


def test_a_privacy_pause_a_wiped_screen_and_a_withdrawal(kitchen: Any, tablet: Tablet) -> None:
    page = tablet.page
    recording = tablet.begin("Tea and toast", display="paragraph")
    tablet.checklist()
    tablet.tap("Pause", exact=True)
    assert small_boxes(page, 64) == []
    page.get_by_role("button", name="Privacy pause").click()
    page.locator(".cover h1", has_text="Privacy pause").wait_for()
    page.reload()  # a pause outlives the page
    page.locator(".cover h1", has_text="Privacy pause").wait_for()
    page.locator(".cover .done").click()
    page.locator(".cover").wait_for(state="hidden")
    tablet.tap("Pause", exact=True)
    page.get_by_role("button", name="Wipe the screen").click()
    before = len(kitchen.tools.records.ops(recording))
    rng = random.Random(7)
    for _ in range(60):  # drops and a cloth, everywhere but on the two targets
        page.mouse.click(rng.randrange(240, 1000), rng.randrange(300, 560))
    page.locator(".second").click()  # in the wrong order
    page.locator(".cover").wait_for()
    page.locator(".first").click()
    page.wait_for_timeout(450)
    page.locator(".second").click()
    page.locator(".cover").wait_for(state="hidden")
    tablet.saved()
    assert len(kitchen.tools.records.ops(recording)) == before
    (pause,) = kitchen.tools.records.state(recording)["pauses"]
    assert pause["start"] < pause["end"]
    tablet.tap("End", exact=True)
    tablet.tap("My data")
    tablet.tap("Withdraw this recording")
    tablet.tap("Yes, withdraw it")
    tablet.screen("done")
    page.get_by_text("This recording is withdrawn").wait_for()
    tablet.saved()
    assert kitchen.tools.records.state(recording)["phase"] == "withdrawn"


def test_a_step_is_paused_and_goes_on_in_one_run(kitchen: Any, tablet: Tablet) -> None:
    page = tablet.page
    recording = tablet.begin("Tea and toast")
    tablet.checklist()
    tablet.tap("Begin", exact=True)
    page.get_by_role("button", name="Begin too").wait_for()
    tablet.tap("Pause", exact=True)
    assert small_boxes(page, 64) == []
    tablet.tap("Pause this step")
    page.get_by_text("Step 1 of 11 · paused").wait_for()
    assert serious(page) == []
    page.reload()  # it outlives the page
    page.get_by_text("Step 1 of 11 · paused").wait_for()
    tablet.tap("All steps")
    page.get_by_role("button", name="Begin", exact=True).first.click()  # another one in between
    page.locator(".held").wait_for()
    assert small_boxes(page, 64) == []
    page.locator(".held").click()
    page.locator(".open-step").nth(1).wait_for()
    page.locator(".open-step .done").first.click()
    page.get_by_text("1 / 11").wait_for()
    tablet.saved()
    state = kitchen.tools.records.state(recording)
    (run,) = state["steps"][str(state["recording"]["order"][0])]["runs"]
    (hold,) = run["holds"]
    assert run["start"] < hold["start"] < hold["end"] < run["end"]
    assert [op["kind"] for op in kitchen.tools.records.ops(recording) if op["body"].get("node")] == [
        *("start", "hold", "start", "start", "done")
    ]


def test_drops_on_the_glass_do_nothing_and_do_not_stop_a_finger(kitchen: Any, browser: Any) -> None:
    with on_screen(kitchen, browser, has_touch=True) as tablet:
        page = tablet.page
        recording = tablet.begin("Tea and toast")
        tablet.checklist()
        tablet.tap("Begin", exact=True)
        page.get_by_role("button", name="Begin too").wait_for()
        while not ops(kitchen, recording, "awake"):
            page.wait_for_timeout(50)
        tablet.saved()
        before, shown = kitchen.tools.records.ops(recording), page.locator("#screen").inner_text()
        boxes = [box.bounding_box() for box in page.get_by_role("button").all()]
        rng, taps = random.Random(11), 0
        while taps < 200:  # twenty a second for ten seconds, and more
            x, y = rng.randrange(1280), rng.randrange(800)
            near = (b["x"] <= x <= b["x"] + b["width"] and b["y"] <= y <= b["y"] + b["height"] for b in boxes)
            if not any(near):
                page.touchscreen.tap(x, y)
                taps += 1
        fingers = Fingers(page)
        done = middle_of(page, "footer .done")
        fingers.touch("touchStart", finger=done)
        fingers.touch("touchMove", finger=(done[0], 300))  # it leaves the button before it is lifted
        fingers.touch("touchEnd")
        page.wait_for_timeout(500)
        assert page.locator("#screen").inner_text() == shown
        assert [op["kind"] for op in kitchen.tools.records.ops(recording)] == [op["kind"] for op in before]
        drop = (640, 400)
        fingers.touch("touchStart", drop=drop)  # it stays where it is
        fingers.touch("touchStart", drop=drop, finger=done)
        fingers.touch("touchEnd", finger=done)
        page.get_by_text("1 / 11").wait_for()
        fingers.touch("touchEnd")
        page.wait_for_timeout(500)
        tablet.saved()
        assert [op["kind"] for op in kitchen.tools.records.ops(recording)[len(before) :]] == ["done", "start"]


def test_a_bounce_is_no_second_touch_though_the_button_was_drawn_anew(kitchen: Any, tablet: Tablet) -> None:
    page = tablet.page
    recording = tablet.begin("Tea and toast")
    tablet.checklist()
    tablet.begin_first_step(kitchen, recording)
    tablet.rest()
    place = middle_of(page, "footer .done")
    page.mouse.click(*place)
    page.wait_for_timeout(150)  # the next step has its own button by now, at the same place
    page.mouse.click(*place)
    tablet.rest()
    tablet.saved()
    assert len(ops(kitchen, recording, "done")) == 1


def test_a_bounce_touches_nothing_of_the_sheet_that_opened_under_the_finger(
    kitchen: Any, browser: Any
) -> None:
    with on_screen(kitchen, browser, has_touch=True) as tablet:
        page = tablet.page
        recording = tablet.begin("Tea and toast")
        tablet.checklist()
        tablet.begin_first_step(kitchen, recording)
        tablet.tap("Error", exact=True)
        tile = middle_of(page, "[data-category='3']")
        tablet.tap("Back, no error")
        tablet.rest()
        page.evaluate(BELOW, ["[data-key=error]", *tile])  # where a sheet of another size would have its tile
        page.touchscreen.tap(*tile)
        page.wait_for_timeout(120)
        assert page.evaluate(TILE_AT, [*tile])
        page.touchscreen.tap(tile[0] + 8, tile[1] - 5)
        tablet.rest()
        tablet.saved()
        assert page.get_by_role("dialog").is_visible()
        assert ops(kitchen, recording, "error") == []
        page.touchscreen.tap(*tile)
        page.get_by_role("dialog").wait_for(state="hidden")
        tablet.rest()  # the touch is kept first
        tablet.saved()
        (error,) = ops(kitchen, recording, "error")
        assert error["body"]["fields"]["categories"] == [3]


BELOW = """([place, x, y]) => {
    const at = { position: "fixed", left: `${x - 60}px`, top: `${y - 40}px`, width: "120px", height: "80px" };
    Object.assign(document.querySelector(place).style, at);
}"""
TILE_AT = "([x, y]) => Boolean(document.elementFromPoint(x, y).closest('dialog [data-category]'))"


def test_what_is_drawn_meanwhile_does_not_take_a_button_from_under_the_finger(
    kitchen: Any, tablet: Tablet
) -> None:
    page = tablet.page
    recording = tablet.begin("Tea and toast")
    tablet.checklist()
    tablet.begin_first_step(kitchen, recording)
    tablet.rest()
    page.mouse.move(*middle_of(page, "[data-key=pause]"))
    page.mouse.down()
    page.keyboard.press("PageDown")  # a foot pedal finishes the step: everything on the screen is drawn anew
    page.wait_for_timeout(200)
    page.mouse.up()
    page.get_by_role("dialog").wait_for()
    page.get_by_text("1 / 11").wait_for()


def middle_of(page: Any, place: str) -> tuple[float, float]:
    """The middle of a control, as soon as it is there."""
    box = page.locator(place).element_handle().bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


class Fingers:
    """Several touches at once, as the screen's hardware tells them."""

    def __init__(self, page: Any) -> None:
        self.session = page.context.new_cdp_session(page)

    def touch(self, kind: str, **points: tuple[float, float]) -> None:
        """Report what touches the glass now (for `touchEnd`: what is lifted), by name."""
        ids = {"finger": 1, "drop": 2}
        told = [{"x": x, "y": y, "id": ids[name]} for name, (x, y) in points.items()]
        self.session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": told})


def test_an_error_between_two_steps_is_one_of_the_step_that_was_done_last(
    kitchen: Any, tablet: Tablet
) -> None:
    page = tablet.page
    recording = tablet.begin("Tea and toast")
    tablet.checklist()
    order = kitchen.tools.records.state(recording)["recording"]["order"]
    for finished, place in enumerate((2, 0), start=1):  # the third, then the first: not as the order has it
        tablet.tap("All steps")
        page.locator(".all-steps li").nth(place).get_by_role("button", name="Begin", exact=True).click()
        tablet.rest()
        tablet.tap("All steps")
        page.locator(".all-steps li").nth(place).locator(".row.tall").click()
        page.get_by_text(f"{finished} / 11").wait_for()
        tablet.rest()
    tablet.tap("Error", exact=True)
    tablet.tap("Timing")
    tablet.rest()  # the touch is kept first
    tablet.saved()
    (error,) = ops(kitchen, recording, "error")
    assert error["body"]["fields"]["node"] == order[0]


def test_what_was_logged_and_what_undo_takes_back_is_said_in_words(kitchen: Any, tablet: Tablet) -> None:
    page = tablet.page
    recording = tablet.begin("Tea and toast")
    tablet.checklist()
    tablet.tap("Begin", exact=True)
    tablet.tap("Error", exact=True)
    tablet.tap("Technique")
    page.get_by_text("Noted: Technique · Step 1").wait_for()
    assert page.get_by_role("button", name="Undo Technique · Step 1", exact=True).count() == 1
    assert serious(page) == []
    tablet.rest()
    tablet.tap("Undo")
    page.locator(".noted").wait_for(state="detached")
    page.locator("footer .done").click()
    page.get_by_role("button", name="Undo done · Step 1", exact=True).wait_for()
    tablet.saved()
    assert kitchen.tools.records.state(recording)["errors"] == {}


def test_what_was_taken_back_is_done_again_after_a_reload(kitchen: Any, tablet: Tablet) -> None:
    page = tablet.page
    recording = tablet.begin("Tea and toast")
    tablet.checklist()
    tablet.tap("Begin", exact=True)
    tablet.rest()
    page.locator("footer .done").click()
    page.get_by_text("1 / 11").wait_for()
    tablet.tap("Undo")
    page.get_by_text("0 / 11").wait_for()
    page.reload()
    tablet.tap("All steps")
    tablet.tap("Redo", exact=True)
    page.get_by_text("1 / 11").wait_for()
    tablet.saved()
    assert kitchen.tools.records.state(recording)["redo"] == []

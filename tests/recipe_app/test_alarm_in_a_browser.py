"""What a cook is told when devices or the recorder fail: in the cook's words, over the whole width, until touched."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest
from browser import LANDSCAPE, PIN, on_screen
from rigs import Rig
from screens import PHONE, ZOOMED, serious

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
WHY = "gopro/video: nothing from 192.168.7.3:8080 (hololens/pv neither)"
TECHNICAL = re.compile(r"\d+\.\d+\.\d+\.\d+|:\d{4}|(hololens|gopro)/|[a-z]_[a-z]")


def plain(page: Any) -> str:
    """The text that can be seen, in which nothing is for an operator."""
    text = str(page.locator("body").inner_text())
    assert not TECHNICAL.search(text), text
    return text


def covered_buttons(page: Any, within: str) -> list[str]:
    """Return the buttons that lie partly under the alarm."""
    bar = page.locator(".alarm").bounding_box()
    lowest = bar["y"] + bar["height"]
    buttons = page.locator(f"{within} button:not(.alarm button):visible").all()
    assert buttons
    return [one.inner_text() for one in buttons if one.bounding_box()["y"] < lowest]


UNREACHABLE = """() => [...document.querySelectorAll("dialog[open] button")].filter((box) => {
  box.scrollIntoView({ block: "center" });
  const { left, top, width, height } = box.getBoundingClientRect();
  const corners = [[8, 8], [width - 8, 8], [8, height - 8], [width - 8, height - 8], [width / 2, height / 2]];
  return !corners.every(([x, y]) => box.contains(document.elementFromPoint(left + x, top + y)));
}).map((box) => box.textContent)"""
"""Buttons of the open sheet of which a part cannot be touched, even after scrolling to them."""


def test_what_fails_is_called_out_until_it_is_touched_and_names_no_address(
    kitchen: Any, browser: Any
) -> None:
    rig = Rig(kitchen)
    kitchen.__dict__["tools"] = dataclasses.replace(kitchen.tools, capture=rig)
    kitchen.record("soup_1", "stopped")  # nobody else's is there to be joined
    with on_screen(kitchen, browser) as tablet:
        page = tablet.page
        plain(page)
        tablet.begin("Tea and toast")
        plain(page)
        rig.start = lambda recording, **_: [WHY]  # type: ignore[method-assign]
        tablet.to_checklist()
        for box in page.get_by_role("checkbox").all():
            box.click()
        page.get_by_label("Pseudonym of the second person").fill("Clove")
        page.locator("#start").click()
        page.get_by_role("dialog", name="The recording did not start").wait_for()
        plain(page)
        del rig.start
        tablet.tap("Try again")
        tablet.screen("follow")
        plain(page)

        alarm = page.get_by_role("alert")
        rig.said = {"health": "problem", "reasons": [WHY], "alarm": "camera"}
        alarm.get_by_text("The camera has stopped. Please call the operator.").wait_for()
        assert "Problem" in plain(page)
        box = alarm.bounding_box()
        assert box["x"] == 0
        assert box["width"] == 1280
        assert box["height"] >= 160
        assert alarm.evaluate("it => getComputedStyle(it).backgroundColor") == "rgb(179, 32, 31)"
        assert serious(page) == []
        assert covered_buttons(page, ".follow") == []
        page.keyboard.press("PageUp")  # the sheet of errors opens: the alarm is above it
        page.locator("dialog .alarm").wait_for()
        assert covered_buttons(page, "dialog") == []
        for size in (ZOOMED, PHONE, LANDSCAPE):
            page.set_viewport_size(size)
            page.wait_for_timeout(600)  # the alarm is placed again within half a second
            assert page.evaluate(UNREACHABLE) == [], size
        page.locator("dialog").get_by_role("button", name="Details").click()
        page.get_by_role("dialog", name="For the operator").get_by_text(WHY).wait_for()
        page.get_by_role("dialog", name="For the operator").get_by_role("button", name="Back").click()
        rig.said = {"health": "recording", "reasons": [], "alarm": ""}
        page.locator(".dot.recording").wait_for(state="attached")
        alarm.get_by_role(
            "button", name="The camera has stopped"
        ).click()  # over, and told until it is touched
        alarm.wait_for(state="detached")
        tablet.tap("Back, no error")

        rig.said = {"health": "stopped", "reasons": [WHY], "alarm": "stopped"}
        alarm.get_by_text("The recording has stopped. Please call the operator.").wait_for()
        alarm.get_by_role("button", name="The recording has stopped").click()
        with page.expect_response("**/api/v1/health/*"), page.expect_response("**/api/v1/health/*"):
            pass
        tablet.rest()
        assert not alarm.is_visible()  # it was touched
        for health in ("recording", "stopped"):  # a rate that goes up and down
            rig.said = {"health": health, "reasons": [], "alarm": "stopped" if health == "stopped" else ""}
            page.locator(f".dot.{health}").wait_for(state="attached")
            tablet.rest()
            assert not alarm.is_visible(), "it does not flicker"
        rig.refuses = [WHY]
        tablet.end_early()
        page.get_by_role("dialog", name="The devices did not stop").wait_for()
        plain(page)
        page.get_by_role("dialog").get_by_role("button", name="OK").click()
        tablet.screen("review")
        plain(page)


def test_no_screen_of_a_participant_names_what_is_the_operators(kitchen: Any, browser: Any) -> None:
    """Every screen and sheet of the tablet, with devices, with refusals and without a server."""
    rig = Rig(kitchen)
    kitchen.__dict__["tools"] = dataclasses.replace(kitchen.tools, capture=rig)
    kitchen.record("soup_1", "stopped")
    seen: list[str] = []
    with on_screen(kitchen, browser) as tablet:
        page = tablet.page

        def look(name: str) -> None:
            assert name in (str(page.evaluate("document.body.dataset.screen")), "sheet")
            seen.append(name)
            plain(page)

        def sheet(button: str, back: str = "Back") -> None:
            tablet.tap(button, exact=True)
            page.locator("dialog[open]").wait_for()
            look("sheet")
            page.get_by_role("dialog").get_by_role("button", name=back, exact=True).click()
            tablet.rest()

        look("choose")
        page.goto(f"{tablet.url}/t/pair")
        tablet.screen("pair")
        page.get_by_label("Code").fill("XXXX-XXXX")
        tablet.tap("Pair", exact=True)
        page.locator(".warning:not(:empty)").first.wait_for()
        look("pair")
        page.goto(f"{tablet.url}/t/choose")
        tablet.tap("Sign out")
        tablet.screen("sign-in")
        look("sign-in")
        tablet.tap("Basil")
        tablet.screen("pin")
        for said in (*(f"tries left: {left}" for left in (4, 3, 2, 1, 0)), "too many tries"):
            for digit in "602214":
                tablet.tap(digit, exact=True)
            page.get_by_text(said).wait_for()
        look("pin")
        kitchen.utc_ns += 3_600_000_000_000
        for digit in PIN:
            tablet.tap(digit, exact=True)
        tablet.screen("choose")
        page.locator("#recipes").get_by_role("button", name="Tea and toast").click()
        tablet.screen("recipe")
        look("recipe")
        page.go_back()
        tablet.screen("choose")
        page.locator("#recipes").get_by_role("button", name="Tea and toast").click()
        tablet.screen("recipe")
        page.locator('input[name="strategy"][value="disordered"]').check()
        tablet.tap("Begin", exact=True)
        tablet.screen("instructions")
        look("instructions")
        sheet("My data")
        tablet.instructed()
        look("prepare")
        sheet("Plan an error", "Cancel")
        tablet.tap("Ready: to the checklist")
        tablet.screen("checklist")
        look("checklist")
        page.locator("[data-key=gather]").click()
        tablet.screen("gather")
        look("gather")
        tablet.tap("To the checklist")
        tablet.screen("checklist")
        rig.start = lambda recording, **_: [WHY]  # type: ignore[method-assign]
        for box in page.get_by_role("checkbox").all():
            box.click()
        page.get_by_label("Pseudonym of the second person").fill("Clove")
        page.locator("#start").click()
        page.get_by_role("dialog", name="The recording did not start").wait_for()
        look("sheet")
        del rig.start
        tablet.tap("Try again")
        tablet.screen("follow")
        tablet.tap("Begin", exact=True)
        look("follow")
        for button, back in (
            ("All steps", "Back"),
            ("Pause", "Back"),
            ("Error", "Back, no error"),
            ("End", "No, go on"),
        ):
            sheet(button, back)
        for alarm in ("camera", "headset", "recording", "stopped"):
            rig.said = {"health": "problem", "reasons": [WHY], "alarm": alarm}
            page.locator(".alarm").wait_for()
            look("follow")
            page.locator(".alarm .call").click()
            rig.said = {"health": "recording", "reasons": [], "alarm": ""}
            page.locator(".dot.recording").wait_for()
        rig.refuses = [WHY]
        tablet.end_early()
        page.get_by_role("dialog", name="The devices did not stop").wait_for()
        look("sheet")
        page.get_by_role("dialog").get_by_role("button", name="OK", exact=True).click()
        tablet.screen("review")
        look("review")
        sheet("Add an error", "Back")
        for row in page.locator(".outcomes").all():
            row.get_by_role("button", name="As planned").click()
            tablet.rest()
        tablet.tap("Finish", exact=True)
        tablet.screen("done")
        look("done")
        tablet.saved()
        page.context.set_offline(True)
        page.goto(f"{tablet.url}/t/choose")
        page.get_by_text("No connection to the server").wait_for()
        look("choose")
        page.goto(f"{tablet.url}/t/recipes/tea_and_toast")
        tablet.screen("failed")
        look("failed")
        page.context.set_offline(False)
    assert len(set(seen)) >= 13

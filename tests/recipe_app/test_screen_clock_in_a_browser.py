"""The screen clock on the glass: what a screenshot shows is read by the reader of films, and equals the log."""

from __future__ import annotations

import dataclasses
from typing import Any

import cv2
import numpy as np
import pytest
from browser import on_screen, ops
from rigs import Rig
from screens import serious

from sync.screen.find import SeenScreen, find_screen

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
BEZEL_PX = 60
SLOW = """const real = requestAnimationFrame.bind(window);
window.requestAnimationFrame = (act) => real((stamp) => act(stamp / 12));"""
"""Time goes twelve times slower for what is drawn: two seconds are long enough for pictures."""


def glass(page: Any) -> SeenScreen | None:
    """Read the screen clock in a screenshot, with the frame of a tablet around it."""
    picture = cv2.imdecode(np.frombuffer(page.screenshot(), np.uint8), cv2.IMREAD_GRAYSCALE)
    assert picture is not None
    framed = cv2.copyMakeBorder(picture, *[BEZEL_PX] * 4, cv2.BORDER_CONSTANT, value=20)
    return find_screen(np.asarray(framed, np.uint8))


@pytest.fixture
def recorded(kitchen: Any) -> Rig:
    """A kitchen with devices that record."""
    rig = Rig(kitchen)
    rig.said = {"health": "starting", "reasons": [], "alarm": ""}
    kitchen.__dict__["tools"] = dataclasses.replace(kitchen.tools, capture=rig)
    return rig


@pytest.mark.slow
def test_cameras_see_on_the_glass_what_the_log_says(kitchen: Any, browser: Any, recorded: Rig) -> None:
    with on_screen(kitchen, browser) as tablet:
        page = tablet.page
        page.add_init_script(SLOW)
        page.reload()
        recording = tablet.begin("Tea and toast")
        tablet.checklist()
        tablet.screen("follow")
        assert page.locator(".screen-clock").count() == 0
        recorded.said = {**recorded.said, "health": "recording"}
        page.locator(".screen-clock", has_text="Please look at the tablet").wait_for()
        assert serious(page) == []
        page.locator(".screen-clock canvas").wait_for()
        seen = []
        while page.locator(".screen-clock").count():
            if (found := glass(page)) is not None:
                seen.append(found)
        (told,) = _wait_for(kitchen, page, recording, 1)
        assert len(seen) >= 2
        assert {one.number for one in seen} == {told["body"]["number"]}
        assert {one.row.size for one in seen} == {8}
        for one in seen:  # one column is white in each band, and they belong to one refresh
            upper, lower = (int(band.mean(axis=0).argmax()) for band in (one.light[:4], one.light[4:]))
            assert lower == upper * 5 % 12
        assert told["body"]["refresh_hz"] > 60  # time goes slower for the page


def test_a_touch_goes_through_and_ends_the_clock(kitchen: Any, browser: Any, recorded: Rig) -> None:
    with on_screen(kitchen, browser) as tablet:
        page = tablet.page
        recording = tablet.begin("Tea and toast")
        tablet.checklist()
        tablet.screen("follow")
        recorded.said = {**recorded.said, "health": "recording"}
        page.locator(".screen-clock").wait_for()
        tablet.rest()
        page.locator("footer .done").click()
        page.locator(".screen-clock").wait_for(state="detached")
        page.wait_for_timeout(1500)
        assert len(ops(kitchen, recording, "start")) == 1
        assert ops(kitchen, recording, "screen_clock") == []


def _wait_for(kitchen: Any, page: Any, recording: str, count: int) -> list[dict[str, Any]]:
    for _ in range(50):
        if len(found := ops(kitchen, recording, "screen_clock")) >= count:
            return found
        page.wait_for_timeout(100)
    return found

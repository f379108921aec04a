"""Ending what the devices record, on the tablet in a real browser."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from browser import on_screen, ops
from rigs import Rig
from screens import serious

pytestmark = pytest.mark.timeout(240)


def test_devices_that_do_not_stop_are_named_and_asked_again(kitchen: Any, browser: Any) -> None:
    rig = Rig(kitchen)
    kitchen.__dict__["tools"] = dataclasses.replace(kitchen.tools, capture=rig)
    kitchen.record("soup_1", "stopped")  # nobody else's recording to join
    with on_screen(kitchen, browser) as tablet:
        recording = tablet.begin("Tea and toast")
        tablet.checklist()
        assert [call for call, _ in rig.calls] == ["start"]
        tablet.saved()
        tablet.page.context.clear_cookies(name="ks_login")  # it expired while somebody cooked
        rig.refuses = ["nobody answers"]
        tablet.tap("End", exact=True)
        tablet.tap("Yes, to the review")
        tablet.screen("review")  # the person goes on all the same
        sheet = tablet.page.get_by_role("dialog", name="The devices did not stop")
        sheet.get_by_text("nobody answers").wait_for()
        assert serious(tablet.page) == []
        sheet.get_by_role("button", name="OK").click()

        tablet.tap("Back", exact=True)  # to the steps, and at the end once more: refused is not stopped
        tablet.screen("follow")
        tablet.tap("End", exact=True)
        tablet.tap("Yes, to the review")
        sheet.get_by_text("nobody answers").wait_for()
        rig.refuses = []
        tablet.rest()
        sheet.get_by_role("button", name="Try again").click()
        sheet.wait_for(state="detached")
        while kitchen.tools.records.state(recording)["capture"]["action"] != "stop":
            tablet.page.wait_for_timeout(50)
    assert [op["body"]["reasons"] for op in ops(kitchen, recording, "capture")] == [
        [],
        ["nobody answers"],
        ["nobody answers"],
        [],
    ]

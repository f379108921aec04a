"""Ending what the devices record, on the tablet in a real browser."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from browser import Tablet, on_screen, ops
from rigs import Rig
from screens import serious

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def rig(kitchen: Any) -> Rig:
    """The devices of the kitchen; nobody else's recording is there to be joined."""
    made = Rig(kitchen)
    kitchen.__dict__["tools"] = dataclasses.replace(kitchen.tools, capture=made)
    kitchen.record("soup_1", "stopped")
    return made


def test_devices_that_do_not_stop_are_named_and_asked_again(kitchen: Any, rig: Rig, browser: Any) -> None:
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
        assert not sheet.get_by_text("nobody answers").is_visible()
        sheet.get_by_text("For the operator").click()
        sheet.get_by_text("nobody answers").wait_for()
        assert serious(tablet.page) == []
        sheet.get_by_role("button", name="OK").click()

        tablet.tap("Back", exact=True)  # to the steps, and at the end once more: refused is not stopped
        tablet.screen("follow")
        tablet.tap("End", exact=True)
        tablet.tap("Yes, to the review")
        sheet.wait_for()
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


def ended_offline(kitchen: Any, tablet: Tablet) -> tuple[str, Any]:
    """A recording that its tablet began and ended, the latter without network; and what the tablet says of it."""
    recording = tablet.begin("Tea and toast")
    tablet.checklist()
    tablet.begin_first_step(kitchen, recording)
    tablet.page.reload()  # it knows from the server that the devices record
    tablet.screen("follow")
    tablet.page.context.set_offline(True)
    tablet.tap("End", exact=True)
    tablet.tap("Yes, to the review")
    tablet.screen("review")
    sheet = tablet.page.get_by_role("dialog", name="The devices did not stop")
    sheet.get_by_text("No answer from the server").wait_for(state="attached")
    return recording, sheet


def test_an_end_without_network_is_repeated_until_it_is_heard(kitchen: Any, rig: Rig, browser: Any) -> None:
    with on_screen(kitchen, browser) as tablet:
        recording, sheet = ended_offline(kitchen, tablet)
        tablet.page.wait_for_timeout(3500)  # asked once more, in vain
        assert sheet.is_visible()
        tablet.page.context.set_offline(False)
        sheet.wait_for(state="detached")
        tablet.saved()
    assert [call for call, _ in rig.calls] == ["start", "stop"]
    assert kitchen.tools.records.state(recording)["phase"] == "review"


def test_an_end_without_network_is_not_repeated_where_somebody_cooks_on(
    kitchen: Any, rig: Rig, browser: Any
) -> None:
    with on_screen(kitchen, browser) as tablet:
        recording, sheet = ended_offline(kitchen, tablet)
        claim = {"operations": [kitchen.operation(recording, "claim", {}) | {"seq": 1}]}
        assert kitchen.second_tablet().post("/api/v1/ops", json=claim).status_code == 200
        tablet.page.context.set_offline(False)
        tablet.saved()
        tablet.page.wait_for_timeout(6500)
        assert sheet.is_visible()
    assert [call for call, _ in rig.calls] == ["start"]

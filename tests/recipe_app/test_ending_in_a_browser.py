"""Ending what the devices record, on the tablet in a real browser."""

from __future__ import annotations

import dataclasses
import io
import wave
from typing import Any

import numpy as np
import pytest
from browser import Tablet, on_screen, ops
from rigs import Rig
from screens import serious

from kitchensync.sync.align.slate import find_slate
from kitchensync.sync.align.sound import Sound

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
        tablet.end_early()
        tablet.screen("review")  # the person goes on all the same
        sheet = tablet.page.get_by_role("dialog", name="The devices did not stop")
        assert not sheet.get_by_text("nobody answers").is_visible()
        sheet.get_by_text("For the operator").click()
        sheet.get_by_text("nobody answers").wait_for()
        assert serious(tablet.page) == []
        sheet.get_by_role("button", name="OK").click()

        tablet.tap("Back", exact=True)  # to the steps, and at the end once more: refused is not stopped
        tablet.screen("follow")
        tablet.end_early()
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


def test_a_slate_is_played_when_devices_begin_and_end_to_record(kitchen: Any, rig: Rig, browser: Any) -> None:
    (kitchen.data / "lab.toml").write_text("slate = true\n")
    with on_screen(kitchen, browser) as tablet:
        tablet.page.evaluate(
            "() => { window.heard = []; const play = Audio.prototype.play;"
            " HTMLMediaElement.prototype.play = function () {"
            " this.addEventListener('ended', () => heard.push([this.src, this.currentTime]));"
            " return play.call(this); }; }"
        )
        recording = tablet.begin("Tea and toast")
        tablet.checklist()
        tablet.screen("follow")
        while not tablet.page.evaluate("heard.length"):
            tablet.page.wait_for_timeout(50)
        tablet.end_early()
        tablet.screen("review")
        heard = tablet.page.evaluate("heard")
        address = f"/api/v1/slate/{recording}"
        assert [source.endswith(address) for source, _ in heard] == [True, True]
        body = tablet.page.request.get(heard[0][0]).body()
    with wave.open(io.BytesIO(body)) as sound:
        played = np.frombuffer(sound.readframes(sound.getnframes()), "<i2")
    samples = np.random.default_rng(1).normal(0, 3000, 6 * 48_000).astype(np.float32)
    samples[48_000 : 48_000 + len(played)] += played
    [(_, started)] = [call for call in rig.calls if call[0] == "start"]
    told = find_slate(Sound(0.0, samples[::4], 12_000.0), ["tea_1", started, "tea_2"])
    assert told is not None
    assert (told.recording, round(told.at_s, 2)) == (started, 1.0)
    assert [at_s for _, at_s in heard] == [pytest.approx(1.92)] * 2


def test_a_slate_that_never_comes_keeps_no_device_recording(kitchen: Any, rig: Rig, browser: Any) -> None:
    (kitchen.data / "lab.toml").write_text("slate = true\n")
    with on_screen(kitchen, browser) as tablet:
        tablet.begin("Tea and toast")
        tablet.checklist()
        tablet.screen("follow")
        tablet.page.route("**/api/v1/slate/**", lambda _: None)  # a server that does not answer
        tablet.page.evaluate(
            "() => { Audio = class extends Audio { constructor(at) { super(`${at}?anew`); } }; }"
        )
        tablet.end_early()
        tablet.screen("review")
    assert [call for call, _ in rig.calls] == ["start", "stop"]


def ended_offline(kitchen: Any, tablet: Tablet) -> tuple[str, Any]:
    """A recording that its tablet began and ended, the latter without network; and what the tablet says of it."""
    recording = tablet.begin("Tea and toast")
    tablet.checklist()
    tablet.begin_first_step(kitchen, recording)
    tablet.page.reload()  # it knows from the server that the devices record
    tablet.screen("follow")
    tablet.page.context.set_offline(True)
    tablet.end_early()
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


def test_what_is_not_done_at_the_end_is_asked_and_kept(kitchen: Any, browser: Any) -> None:
    with on_screen(kitchen, browser) as tablet:
        page = tablet.page
        recording = tablet.begin("Tea and toast")
        tablet.checklist()

        def steps() -> dict[str, Any]:
            tablet.saved()
            return dict(kitchen.tools.records.state(recording)["steps"])

        first, second, third, *later = kitchen.tools.records.state(recording)["recording"]["order"]
        tablet.begin_first_step(kitchen, recording)
        tablet.tap("Begin too")
        tablet.rest()
        tablet.tap("End", exact=True)
        tablet.tap("Yes, to the review")
        count = 1 + len(later)
        sheet = page.get_by_role("dialog", name=f"{count} steps were not done: left out, or stopped early?")
        sheet.wait_for()
        assert serious(page) == []
        stopped = sheet.get_by_role("button", name="Stopped early")
        assert stopped.is_disabled()  # nobody said yet what became of the two that are begun
        tablet.rest()
        sheet.get_by_role("button", name="Done", exact=True).first.click()
        sheet.get_by_role("button", name="Not finished").last.click()
        stopped.click()
        tablet.screen("review")
        page.get_by_text(f"{count + 1} steps were not done: cooking stopped early.").wait_for()
        found = steps()
        (ended,) = ops(kitchen, recording, "end")
        assert ended["body"] == {"rest": "stopped_early"}
        assert [found[str(node)]["state"] for node in (first, second, third)] == [
            "done",
            "stopped",
            "waiting",
        ]
        (run,) = found[str(second)]["runs"]
        assert (run["end"], run["stopped"]) == (None, ended["host_ns"])

        tablet.tap("Back", exact=True)  # it is gone on with after all
        tablet.screen("follow")
        tablet.tap("Go on", exact=True)
        page.locator(".open-step .label").get_by_text("not finished").wait_for(state="detached")
        tablet.rest()
        tablet.tap("Done", exact=True)
        page.locator(f"h1[data-node='{third}']").wait_for()
        tablet.rest()
        tablet.tap("Done", exact=True)
        page.locator(f"h1[data-node='{later[0]}']").wait_for()
        tablet.rest()
        tablet.tap("End", exact=True)
        tablet.tap("Yes, to the review")
        tablet.rest()
        rest = page.locator("dialog .rest")
        rest.get_by_role("button", name="Not finished").click()
        rest.get_by_role("button", name="Left out").click()
        tablet.screen("review")
        found = steps()
        assert [found[str(node)]["state"] for node in (first, second, third)] == ["done"] * 3
        assert found[str(second)]["runs"][0]["holds"][0]["start"] == ended["host_ns"]
        assert {found[str(node)]["state"] for node in later[1:]} == {"skipped"}
        assert page.locator("#rest").count() == 0


def test_my_data_and_withdrawal_can_be_reached_in_every_stage(kitchen: Any, browser: Any) -> None:
    with on_screen(kitchen, browser) as tablet:
        page = tablet.page

        def look(stage: str, said: str) -> None:
            tablet.screen(stage)
            tablet.tap("My data", exact=True)
            sheet = page.get_by_role("dialog", name="My data")
            sheet.get_by_text(said).wait_for()
            sheet.get_by_role("button", name="Withdraw this recording").wait_for()
            assert serious(page) == []
            tablet.rest()
            sheet.get_by_role("button", name="Back").click()
            sheet.wait_for(state="detached")
            tablet.rest()

        recording = tablet.begin("Tea and toast", strategy="disordered")
        look("prepare", "You were not asked for your consent yet.")
        tablet.tap("Ready: to the checklist")
        look("checklist", "You were not asked")
        page.go_back()
        tablet.screen("prepare")
        tablet.checklist()
        tablet.saved()
        agreed = kitchen.tools.records.state(recording)["consent"]
        said = "You agreed to being recorded" if agreed else "You were not asked"
        tablet.tap("End", exact=True)
        look("follow", said)
        page.keyboard.press("Escape")
        tablet.end_early()
        look("review", said)

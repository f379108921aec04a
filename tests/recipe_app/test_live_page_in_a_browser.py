"""The live page beside a recorder's own channel: what it tells is on the page, and nothing when it tells nothing."""

from __future__ import annotations

import dataclasses
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import at_the_desk
from numbered_recording import write_numbered
from screens import fit_to_be_shown
from told_states import SECOND, told_state

from kitchensync.capture.plan import runtime_folder
from kitchensync.capture.session.control import ControlServer
from kitchensync.capture.station import Station
from kitchensync.recipe_app.web.app import create_app
from kitchensync.shell.host_clock import host_ns
from kitchensync.storage.manifest import edit_manifest

pytestmark = pytest.mark.slow


HAS_PICTURE = """(canvas) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return canvas.width === 320 && data.some((value, place) => place % 4 === 0 && value > 200)
    && data.some((value, place) => place % 4 === 0 && value < 100);
}"""
"""Light and dark: the number that is drawn into every picture."""


class Recorder(threading.Thread):
    """The channel of a recorder that tells what the test wants, until it is ended."""

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        runtime = runtime_folder(folder)
        runtime.mkdir(mode=0o700, parents=True)
        self.changes: dict[str, Any] = {}
        self._server = ControlServer(f"ipc://{runtime}/control")
        self._ending = threading.Event()

    def run(self) -> None:
        while not self._ending.wait(0.02):
            self._server.requests(lambda: told_state(host_ns(), **self.changes))
        self._server.close()

    def end(self) -> None:
        self._ending.set()
        self.join()


@pytest.fixture
def recorder(kitchen: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    """It records `take` into the kitchen's data folder."""
    with tempfile.TemporaryDirectory(prefix="ks") as short:
        monkeypatch.setenv("XDG_RUNTIME_DIR", short)
        write_numbered(kitchen.data, "take")
        with edit_manifest(kitchen.data / "take") as manifest:
            manifest["state"] = "recording"
        recorder = Recorder(kitchen.data / "take")
        recorder.start()
        yield recorder
        recorder.end()


@pytest.fixture
def url(kitchen: Any) -> str:
    """The app that watches what others record; both have the clock of the computer."""
    kitchen.ticking = True
    tools = dataclasses.replace(kitchen.tools, capture=Station(kitchen.data))
    return str(kitchen.serve(create_app(tools)))


def test_what_is_wrong_is_on_the_page_and_without_news_nothing_is_known(
    kitchen: Any, url: str, recorder: Recorder, browser: Any
) -> None:
    recording = str(kitchen.choose(folder="take")["recording"])
    login = kitchen.desk("operator").headers["x-kitchensync-login"]
    page = at_the_desk(browser, url, login).page
    page.goto(f"{url}/desk/recordings/{recording}")
    page.get_by_role("link", name="Watch it live").click()
    page.locator("#light.recording").wait_for()
    tile = page.locator('[data-subject="hololens/pv"]')
    tile.get_by_text("29.9 of 30 packets/s").wait_for()
    page.locator('[data-subject="gopro"]').get_by_text("battery 80 %").wait_for()
    page.get_by_text("90 GB free").wait_for()
    assert page.locator(".tile.alarm, .tile.warning, #wrong li").count() == 0
    fit_to_be_shown(page)

    recorder.changes = {"last_host_ns": host_ns() - 60 * SECOND, "battery_percent": 12}
    page.locator("#light.problem").wait_for()
    page.locator('#wrong li.alarm[data-rule="stream_silent"]', has_text="look at the network").wait_for()
    page.locator('.tile.alarm[data-subject="hololens/pv"]', has_text="nothing has come for").wait_for()
    page.locator('.tile.warning[data-subject="gopro"]', has_text="battery at 12 %").wait_for()
    fit_to_be_shown(page)

    page.get_by_label("Remark").fill("the pan burns")
    page.get_by_role("button", name="Remark now").click()
    page.get_by_text("The remark is kept.").wait_for()
    (mark,) = [op for op in kitchen.tools.records.ops(recording) if op["kind"] == "mark"]
    assert mark["body"] == {"text": "the pan burns"}
    assert "the pan burns" in str(kitchen.events(kitchen.data / "take"))

    canvas = tile.locator("canvas")
    canvas.wait_for()
    assert canvas.evaluate(HAS_PICTURE)
    # a touch without a clock may have been an hour ago, and that hour hides pictures
    clock = {"touch_ms": 1.0, "sent_ms": 0.0, "received_ms": 1.0, **kitchen.clock()}
    kitchen.post(
        kitchen.operation(recording, "claim", {}), kitchen.operation(recording, "pause", {}, clock=clock)
    )
    page.get_by_text("Privacy pause: no pictures").wait_for()
    assert canvas.count() == 0
    kitchen.post(kitchen.operation(recording, "resume", {}, clock=clock | kitchen.clock()))
    canvas.wait_for()

    recorder.changes = {}
    page.locator("#light.recording").wait_for()
    page.context.set_offline(True)
    page.locator("#light.unknown").wait_for()
    page.context.set_offline(False)
    page.locator("#light.recording").wait_for()
    page.get_by_role("button", name="Abort").click()
    asked = page.get_by_role("dialog", name="Abort Tea and toast?")
    asked.get_by_label("Why").fill("the pan burnt")
    fit_to_be_shown(page)
    page.keyboard.press("Escape")
    asked.wait_for(state="detached")
    assert kitchen.manifest("take")["state"] == "recording"
    recorder.end()  # it is gone, and its recording was not ended
    page.locator("#light.problem").wait_for()
    assert page.get_by_role("button", name="Stop recording").is_visible()
    with edit_manifest(kitchen.data / "take") as manifest:
        manifest["state"] = "complete"
    page.get_by_text("This recording has ended").wait_for()
    assert page.get_by_role("button", name="Stop recording").count() == 0
    page.reload()
    page.locator("#light.stopped").wait_for()
    assert page.get_by_role("button", name="Stop recording").count() == 0
    assert page.get_by_text("Nothing is wrong").count() == 0
    fit_to_be_shown(page)
    card = page.get_by_role("link", name="Read the card")
    assert card.get_attribute("href") == f"/desk/recordings/{recording}/card"


def test_nothing_is_remarked_where_nothing_is_recorded(kitchen: Any, url: str) -> None:
    recording = str(kitchen.choose()["recording"])
    operator = kitchen.desk("operator")
    operator.base_url = url
    said = {"op_id": kitchen.operation(recording, "end", {})["op_id"], "text": "too late"}
    answer = operator.post(f"/api/v1/desk/recordings/{recording}/remarks", json=said)
    assert (answer.status_code, answer.json()["error"]) == (409, "nothing is being recorded here")
    live = operator.get(f"/api/v1/desk/recordings/{recording}/live").json()
    assert live == {"health": "standalone", "findings": [], "paused": False}

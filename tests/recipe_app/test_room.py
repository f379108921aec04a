"""Today at the desk: what the recorders tell is on the page, and what is pressed there is done by them."""

from __future__ import annotations

import dataclasses
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import at_the_desk
from screens import fit_to_be_shown
from told_states import SECOND, told_state

from kitchensync.capture.plan import runtime_folder
from kitchensync.capture.session.control import ControlServer, Request
from kitchensync.capture.station import Station
from kitchensync.recipe_app.web.app import create_app
from kitchensync.shell.host_clock import host_ns
from kitchensync.storage.events import EventLog


class Recorder(threading.Thread):
    """The channel of a recorder: tells what the test wants, keeps what it was asked as a supervisor does."""

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self.folder = folder
        runtime = runtime_folder(folder)
        runtime.mkdir(mode=0o700, parents=True)
        self.changes: dict[str, Any] = {}
        self.asked: list[tuple[str, str]] = []
        self._server = ControlServer(f"ipc://{runtime}/control")
        self._ending = threading.Event()
        self.start()

    def run(self) -> None:
        while not self._ending.wait(0.02):
            self._server.requests(self._state, self._heed)
        self._server.close()

    def _state(self) -> dict[str, Any]:
        told = told_state(host_ns(), **self.changes)
        return told | {"recording": self.folder.name, "path": str(self.folder)}

    def _heed(self, request: Request) -> None:
        if request.command == "state":
            return
        self.asked.append((request.command, request.text))
        if request.command in ("pause", "resume"):
            EventLog(self.folder, "operator").append(
                request.command, host_ns=request.host_ns, uncertainty_ns=0, body={}
            )

    def end(self) -> None:
        self._ending.set()
        self.join()


@pytest.fixture
def recorders(kitchen: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Recorder]]:
    """Two rigs: `take` belongs to what a tablet chose, `other` was begun by command."""
    with tempfile.TemporaryDirectory(prefix="ks") as short:
        monkeypatch.setenv("XDG_RUNTIME_DIR", short)
        for name in ("take", "other"):
            kitchen.record(name)
        made = {name: Recorder(kitchen.data / name) for name in ("take", "other")}
        yield made
        for one in made.values():
            one.end()


@pytest.fixture
def url(kitchen: Any, tmp_path: Path) -> str:
    rig = tmp_path / "rig.toml"
    rig.write_text("")
    tools = dataclasses.replace(kitchen.tools, capture=Station(kitchen.data, str(rig)))
    kitchen.__dict__["tools"] = tools
    return str(kitchen.serve(create_app(tools)))


@pytest.mark.slow
def test_several_rigs_are_followed_and_steered_from_one_page(
    kitchen: Any, url: str, recorders: dict[str, Recorder], browser: Any
) -> None:
    recording = str(kitchen.choose(folder="take")["recording"])
    login = kitchen.desk("operator").headers["x-kitchensync-login"]
    page = at_the_desk(browser, url, login).page
    page.goto(f"{url}/desk")
    page.get_by_role("link", name="Today").click()
    take, other = (page.locator(f'[data-subject="{name}"]') for name in ("take", "other"))
    take.locator(".dot.recording").wait_for()
    other.locator(".dot.recording").wait_for()
    assert take.get_by_role("link").get_attribute("href") == f"/desk/recordings/{recording}/live"
    fit_to_be_shown(page)

    recorders["other"].changes = {"last_host_ns": host_ns() - 60 * SECOND}
    other.locator('[data-rule="stream_silent"]').wait_for()
    assert take.locator("[data-rule]").count() == 0

    other.get_by_label("Remark").fill("a knock at the door")
    other.get_by_role("button", name="Remark now").click()
    other.get_by_text("The remark is kept.").wait_for()
    other.get_by_role("button", name="Begin privacy pause").click()
    other.get_by_text("Privacy pause: no pictures").wait_for()
    other.get_by_role("button", name="End privacy pause").click()
    other.get_by_role("button", name="Begin privacy pause").wait_for()
    assert recorders["other"].asked == [("mark", "a knock at the door"), ("pause", ""), ("resume", "")]

    take.get_by_role("button", name="Begin privacy pause").click()
    take.get_by_text("Privacy pause: no pictures").wait_for()
    assert kitchen.tools.records.state(recording)["pauses"][-1]["end"] is None, "the tablet knows"
    assert recorders["take"].asked == []
    fit_to_be_shown(page)

    other.get_by_role("button", name="Stop recording").click()
    asked = page.get_by_role("dialog", name="Stop recording other?")
    assert asked.get_by_role("button", name="No, go on").evaluate("(it) => it === document.activeElement")
    fit_to_be_shown(page)
    page.keyboard.press("Escape")
    asked.wait_for(state="detached")
    other.get_by_text("More", exact=True).click()
    other.get_by_role("button", name="Abort").click()
    asked = page.get_by_role("dialog", name="Abort other?")
    asked.get_by_role("button", name="Abort").click()
    assert asked.is_visible(), "without a reason nothing is aborted"
    assert len(recorders["other"].asked) == 3
    asked.get_by_label("Why").fill("the pan burnt")
    fit_to_be_shown(page)
    recorders["other"].changes = {"ledger_closed": True}
    asked.get_by_role("button", name="Abort").click()
    other.get_by_text("It is aborted and says so.").wait_for()
    assert recorders["other"].asked[3:] == [("abort", "")]
    assert kitchen.manifest("other")["abandoned"]["reason"] == "the pan burnt"

    page.context.set_offline(True)
    page.locator("#light.unknown").wait_for()
    assert page.locator("#rigs .dot.recording").count() == 0
    page.context.set_offline(False)
    page.locator("#light.recording").wait_for()


@pytest.mark.slow
def test_devices_are_looked_over_from_the_page_but_not_while_something_is_recorded(
    kitchen: Any, url: str, browser: Any, request: pytest.FixtureRequest,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))  # others may record on this computer
    desk = kitchen.desk("operator")
    assert kitchen.place
    page = at_the_desk(browser, url, desk.headers["x-kitchensync-login"]).page
    page.goto(f"{url}/desk/room")
    page.get_by_role("button", name="Check the devices").click()
    page.get_by_text("Mend what is marked").wait_for()
    first = page.locator("#preflight .findings li").first
    assert first.get_attribute("data-what") == "rig file"
    assert "nothing to record" in first.inner_text()
    assert page.locator('[data-what="this computer: disk space"]').count() == 0
    fit_to_be_shown(page)
    request.getfixturevalue("recorders")
    answer = desk.post("/api/v1/desk/preflight", json={"kitchen": kitchen.place})
    assert (answer.status_code, "not to be disturbed" in answer.json()["error"]) == (409, True)


def test_a_rig_is_chosen_by_its_kitchen(kitchen: Any, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.toml").write_text("")
    station = Station(kitchen.data, f"North={tmp_path / 'a.toml'}", str(tmp_path / "b.toml"))
    assert station.rig_of("North") == tmp_path / "a.toml"
    assert station.rig_of("South") == station.rig_of("") == tmp_path / "b.toml"
    only = Station(kitchen.data, f"North={tmp_path / 'a.toml'}")
    said = only.start("take", participant="", consent="none", place="South")
    assert said == ["no rig is named for South, with which devices are recorded"]


def test_nobody_steers_what_is_not_in_the_folder_of_the_app(kitchen: Any, url: str) -> None:
    operator = kitchen.desk("operator")
    operator.base_url = url
    body = {"op_id": kitchen.operation("x", "end", {})["op_id"], "action": "stop"}
    for folder in ("elsewhere", "..", "%2e%2e%2fout"):
        assert operator.post(f"/api/v1/desk/room/{folder}", json=body).status_code in (404, 405)

"""The card at the desk: made when a recording has ended, read before the kitchen records again."""

from __future__ import annotations

import dataclasses
import json
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from browser import at_the_desk
from numbered_recording import write_numbered
from rigs import Rig
from screens import fit_to_be_shown

from kitchensync.operations.errors import NotNow
from kitchensync.recipe_app.cooking.steering import steer
from kitchensync.recipe_app.web.app import create_app
from kitchensync.storage.manifest import edit_manifest, read_manifest
from kitchensync.storage.recording_files.kept_session_card import CARDS, kept_cards

pytestmark = pytest.mark.slow

WAIT_S = 60


def take(kitchen: Any) -> tuple[str, Path]:
    """A recording that ended with a film still on its card."""
    write_numbered(kitchen.data, "take")
    path = kitchen.data / "take"
    (path / "gopro").mkdir(exist_ok=True)
    (path / "gopro" / "media.json").write_text(
        json.dumps({"schema": "media/1", "state": "pending", "files": []})
    )
    with edit_manifest(path) as manifest:
        manifest["state"] = "recording"
    recording = str(kitchen.choose(folder="take")["recording"])
    with edit_manifest(path) as manifest:
        manifest["state"] = "complete"
    return recording, path


def another(kitchen: Any, rig: Rig) -> dict[str, Any]:
    tools = dataclasses.replace(kitchen.tools, capture=rig)
    return steer(tools, kitchen.checked(), "start", actor="", reason="")


def test_a_kitchen_records_again_once_the_card_is_read(kitchen: Any) -> None:
    recording, path = take(kitchen)
    rig, operator = Rig(kitchen), kitchen.desk("operator")
    with pytest.raises(NotNow, match="card of take"):
        another(kitchen, rig)
    address = f"/api/v1/desk/recordings/{recording}/card"
    assert operator.get(address).json()["state"] == "asking"
    assert operator.post(address, json={}).status_code == 409, "nobody has read what is not there"
    (path / CARDS).parent.mkdir(exist_ok=True)
    (path / CARDS).write_text(
        json.dumps({"first": {"stage": "first", "status": "WARN", "thumbnails": ["../x"]}})
    )
    answer = operator.post(address, json={})
    assert answer.status_code == 200, answer.text
    read = read_manifest(path)["card"]
    assert (read["stage"], read["status"], read["by"][:8]) == ("first", "WARN", "operator")
    assert another(kitchen, rig)["reasons"] == []
    assert [call for call, _ in rig.calls] == ["start"]


def test_nobody_waits_for_the_card_of_what_shall_not_be_used(kitchen: Any) -> None:
    recording, path = take(kitchen)
    with edit_manifest(path) as manifest:
        manifest["abandoned"] = {"reason": "the pan burnt", "host_ns": 1}
    assert another(kitchen, Rig(kitchen))["reasons"] == []
    page = kitchen.desk("operator").get(f"/desk/recordings/{recording}").text
    assert "Aborted, not to be used: the pan burnt" in page


def test_an_unread_card_is_named_and_no_reason_is_asked_to_record_in_spite_of_it(kitchen: Any) -> None:
    """A reason lets a recording begin without a stream, never without the last one's card being read."""
    wanted = kitchen.checked()
    tools = dataclasses.replace(kitchen.tools, capture=Rig(kitchen))
    said = {"action": "start", "folder": None, "reasons": ["hololens/pv: no packet"], "why": ""}
    kitchen.tools.records.note("capture", wanted, said, actor="")
    operator, address = kitchen.desk("operator"), f"/desk/recordings/{wanted}"
    operator.base_url = httpx.URL(kitchen.serve(create_app(tools)))
    assert "Record without what is missing" in operator.get(address).text
    recording, path = take(kitchen)
    page = operator.get(address).text
    assert f'<a href="/desk/recordings/{recording}/card">Card of take</a>' in page
    assert "Record without what is missing" not in page
    assert '{"action": "start"}' not in page
    with edit_manifest(path) as manifest:
        manifest["card"] = {"by": "Basil", "stage": "first", "status": "PASS"}
    assert "Record without what is missing" in operator.get(address).text


@pytest.mark.slow
def test_the_room_shows_the_card_and_the_operator_reads_it_in_a_browser(kitchen: Any, browser: Any) -> None:
    recording, path = take(kitchen)
    login = kitchen.desk("operator").headers["x-kitchensync-login"]
    page = at_the_desk(browser, kitchen.url, login).page
    page.goto(f"{kitchen.url}/desk/room")
    page.locator('[data-card="take"]').get_by_text("first card").wait_for(timeout=WAIT_S * 1000)
    page.get_by_role("link", name="Read the card").click()
    page.locator("#lines tbody tr", has_text="hololens/pv").wait_for()
    fit_to_be_shown(page)
    page.get_by_role("button", name="I have read it").click()
    page.get_by_text("Read by operator").wait_for()
    page.goto(f"{kitchen.url}/desk/room")
    page.get_by_text("Nothing is being recorded on this computer.").wait_for()
    assert page.locator("[data-card]").count() == 0

    (path / "gopro" / "media.json").write_text(
        json.dumps({"schema": "media/1", "state": "done", "files": []})
    )
    page.locator('[data-card="take"]').get_by_text("final card").wait_for(timeout=WAIT_S * 1000)
    page.goto(f"{kitchen.url}/desk/recordings/{recording}/card")
    page.get_by_text("the first card").wait_for()
    assert kept_cards(path).keys() == {"first", "final"}
    end_s = time.monotonic() + WAIT_S
    while kitchen.tools.cards.is_busy():
        assert time.monotonic() < end_s

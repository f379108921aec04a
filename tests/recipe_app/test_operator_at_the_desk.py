"""What an operator sees and does on the page of a recording, and what of it only researchers read."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import httpx
import pytest
from browser import at_the_desk, on_screen
from rigs import Rig
from screens import fit_to_be_shown

from kitchensync.recipe_app.web.app import create_app

pytestmark = pytest.mark.slow


@pytest.fixture
def rig(kitchen: Any) -> Rig:
    made = Rig(kitchen)
    made.said |= {"health": "problem", "reasons": ["hololens/pv is late"]}
    return made


@pytest.fixture
def url(kitchen: Any, rig: Rig) -> str:
    """The app with devices."""
    return str(kitchen.serve(create_app(dataclasses.replace(kitchen.tools, capture=rig))))


def at_desk(kitchen: Any, url: str, role: str) -> httpx.Client:
    """Somebody with a role at the desk of the app with devices."""
    client: httpx.Client = kitchen.desk(role)
    client.base_url = httpx.URL(url)
    return client


@pytest.mark.promise("An operator, a researcher and an annotator find their work at the desk")
def test_an_operator_sees_how_it_goes_and_stops_it(kitchen: Any, url: str, rig: Rig) -> None:
    recording = str(kitchen.choose(folder="soup_1")["recording"])
    kitchen.post(kitchen.operation(recording, "claim", {}))
    operator, address = at_desk(kitchen, url, "operator"), f"/desk/recordings/{recording}"
    assert f'href="{address}"' in operator.get("/desk").text
    page = operator.get(address)
    assert page.status_code == 200
    for seen in ("Problem", "soup_1", "hololens/pv is late", "Basil", "Held by Tablet", "Stop recording"):
        assert seen in page.text
    offered = set(re.findall(r'(?:data-post|data-send)="([^"]+)"', page.text))
    offered -= {"/api/v1/sign-out", "/api/v1/sign-out/everywhere"}
    assert offered == {f"/api/v1{address}/{what}" for what in ("capture", "release")}
    for action in ("stop", "abort"):
        assert operator.post(f"/api/v1{address}/capture", json={"action": action}).status_code == 200
    assert rig.calls == [("stop", "soup_1"), ("abort", "soup_1")]


def test_an_operator_reads_nothing_of_what_somebody_did(kitchen: Any, url: str) -> None:
    recording = kitchen.checked()
    node = kitchen.tools.records.frozen(recording)["order"][0]
    step = kitchen.tools.records.frozen(recording)["steps"][str(node)]["text"]
    error = kitchen.operation(recording, "end", {})["op_id"]
    fields = {"node": node, "categories": [3], "description": "a minute too long"}
    kitchen.post(
        kitchen.operation(recording, "start", {"node": node}),
        kitchen.operation(recording, "done", {"node": node}),
        kitchen.operation(recording, "error", {"error_id": error, "fields": fields}),
        kitchen.operation(recording, "voice", {"sha256": "0" * 64, "media_type": "audio/webm", "seconds": 7}),
    )
    secret = (
        *("a minute too long", step, error, "Voice note", "export.json", "corrections"),
        *("Error logged", "Left out"),
    )
    pages = {
        role: at_desk(kitchen, url, role).get(f"/desk/recordings/{recording}").text
        for role in ("operator", "researcher")
    }
    assert [words for words in secret if words in pages["operator"]] == []
    assert [words for words in secret if words not in pages["researcher"]] == []
    operator = at_desk(kitchen, url, "operator")
    assert operator.get(f"/desk/recordings/{recording}/export.json").status_code == 303
    for more in ("", f"/voice/{'0' * 64}"):
        assert operator.get(f"/api/v1/desk/recordings/{recording}{more}").status_code == 401


def start_is_offered(client: httpx.Client, recording: str) -> bool:
    return '{"action": "start"}' in client.get(f"/desk/recordings/{recording}").text


def test_start_is_offered_once_the_checklist_is_through_and_until_it_is_done(kitchen: Any, url: str) -> None:
    operator, admin = at_desk(kitchen, url, "operator"), at_desk(kitchen, url, "admin")
    recording = str(kitchen.choose()["recording"])
    page = operator.get(f"/desk/recordings/{recording}").text
    assert "points are open" in page
    assert not start_is_offered(operator, recording)
    assert admin.get(f"/desk/recordings/{recording}").text.count("points are open") == 1
    refused = operator.post(f"/api/v1/desk/recordings/{recording}/capture", json={"action": "start"})
    assert refused.status_code == 409
    for kind, still in ((None, True), ("end", False), ("withdraw", False)):
        ready = kitchen.checked()
        if kind is not None:
            kitchen.post(kitchen.operation(ready, kind, {}))
        assert start_is_offered(operator, ready) is still
    without_devices = kitchen.desk("operator")
    assert not start_is_offered(without_devices, kitchen.checked())


def test_an_operator_starts_at_the_desk_and_reads_why_not(
    kitchen: Any, url: str, rig: Rig, browser: Any
) -> None:
    recording = kitchen.checked()
    page = at_the_desk(browser, url, kitchen.desk("operator").headers["x-kitchensync-login"]).page
    page.goto(f"{url}/desk/recordings/{recording}")
    rig.refuses = ["hololens/pv: no packet within 30 s", "<b>gopro</b>: card full"]
    page.get_by_role("button", name="Start recording").click()
    page.get_by_text("The recording did not start").wait_for()
    page.get_by_text("<b>gopro</b>: card full").wait_for()
    fit_to_be_shown(page)
    rig.refuses = []
    page.get_by_role("button", name="Start recording").click()
    page.get_by_role("button", name="Stop recording").wait_for()
    assert page.get_by_role("button", name="Start recording").count() == 0
    assert page.get_by_text("did not start").count() == 0
    folder = kitchen.tools.records.state(recording)["capture"]["folder"]
    page.get_by_text(folder).wait_for()
    rig.refuses = ["the recorder does not answer"]
    page.get_by_role("button", name="Stop recording").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop recording").click()
    page.get_by_text("The devices did not stop").wait_for()
    page.get_by_text("the recorder does not answer").wait_for()
    assert [action for action, _ in rig.calls] == ["start", "start", "stop"]
    assert rig.calls[1:] == [("start", folder), ("stop", folder)]
    page.context.close()


def test_only_the_desk_lets_a_session_go_on_without_devices(kitchen: Any, browser: Any, rig: Rig) -> None:
    """The tablet goes on by itself, keeps why, and its participant has no button for it."""
    kitchen.__dict__["tools"] = dataclasses.replace(kitchen.tools, capture=rig)
    rig.refuses = ["hololens: no answer"]
    kitchen.record("soup_1", "stopped")  # nobody else's is there to be joined
    with on_screen(kitchen, browser) as tablet:
        recording = tablet.begin("Tea and toast")
        tablet.to_checklist()
        for box in tablet.page.get_by_role("checkbox").all():
            box.click()
        tablet.page.get_by_label("Pseudonym of the second person").fill("Clove")
        tablet.page.locator("#start").click()
        sheet = tablet.page.get_by_role("dialog")
        sheet.get_by_text("The recording did not start").wait_for()
        assert sheet.get_by_role("button").all_inner_texts() == ["Try again"]
        address = f"/api/v1/capture/{recording}"
        cookies = "; ".join(f"{one['name']}={one['value']}" for one in tablet.page.context.cookies())
        asked = kitchen.client(cookie=cookies).post(address, json={"action": "without"})
        assert asked.status_code in (403, 422)
        desk = at_the_desk(browser, kitchen.url, kitchen.desk("operator").headers["x-kitchensync-login"])
        desk.go(f"/recordings/{recording}")
        desk.page.get_by_role("button", name="Go on without a recording").click()
        desk.page.locator("#why").fill("a training session")
        desk.page.get_by_role("dialog").get_by_role("button", name="Go on without a recording").click()
        desk.page.get_by_text("It goes on without a recording: a training session").wait_for()
        tablet.screen("follow")
        tablet.page.locator(".dot.standalone").wait_for()
    said = kitchen.tools.records.state(recording)["capture"]
    assert (said["action"], said["folder"], said["why"]) == ("without", None, "a training session")

"""A person starts and stops real recordings of the virtual kitchen in a browser, and hears why that cannot be."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from app_by_browser import (
    add_cook,
    add_kitchen,
    app_of,
    sign_in_first,
    tablet_of,
    wait_for_end,
    write_rig,
)
from browser import LANDSCAPE, PATIENCE_MS, Tablet, chromium
from processes import kitchensync
from waiting import until

from kitchensync.capture.monitor.live_findings import findings_in
from kitchensync.capture.monitor.rules import ALARM
from kitchensync.capture.plan import runtime_folder
from kitchensync.capture.session.control import ask
from kitchensync.virtual_kitchen.tablet import Desk, operation_id
from kitchensync.virtual_kitchen.tablet import Tablet as Program

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]


@contextmanager
def app_with_rig(tmp_path: Path, host: str, camera: str = "") -> Iterator[tuple[str, str]]:
    """The app with a rig of a headset, and a camera; its address and the invite of its first start."""
    rig = write_rig(tmp_path / "rig.toml", host, camera)
    with app_of(tmp_path / "data", [str(rig)]) as served:
        yield served


class Person:
    """Somebody at the desk and at the tablet, with nothing but a browser."""

    def __init__(self, browser, url: str) -> None:
        self.browser, self.url = browser, url
        self.desk = browser.new_context(viewport=LANDSCAPE).new_page()
        self.desk.set_default_timeout(PATIENCE_MS)

    def look_over(self, url: str) -> None:
        """Have the devices looked over at the desk: headset and camera are there."""
        self.desk.goto(f"{url}desk/room")
        self.desk.get_by_role("button", name="Check the devices").click()
        self.desk.locator('[data-what="gopro: camera"].good').wait_for(state="attached")
        assert self.desk.locator('[data-what="hololens: server version"].good').count() == 1
        assert self.desk.locator('[data-what^="this computer: "]').count() > 5

    def set_up(self, invite: str) -> Tablet:
        """From the invite of the first start to a paired tablet: admin, kitchen, participant, code."""
        desk = self.desk
        sign_in_first(desk, self.url, invite)
        desk.get_by_role("link", name="Add a kitchen and pair a tablet").click()
        code = add_kitchen(desk, "Kitchen 3")
        add_cook(desk, self.url, "Basil")
        return tablet_of(self.browser, self.url, code, "Basil")

    def cook(self, tablet: Tablet) -> None:
        """Four steps, two errors, one of them taken back and logged anew."""
        page = tablet.page
        for number in range(5):
            page.locator("footer .done").click()  # begins the first step, then ends one after the other
            page.get_by_text(f"{number} / 11").wait_for()
            page.wait_for_timeout(2500)
            if number in (1, 2):
                tablet.tap("Error", exact=True)
                tablet.tap(["Timing", "Measurement"][number - 1])
        tablet.end_early()
        tablet.screen("review")


def test_a_whole_session_by_browser_alone(kitchen, runtime, tmp_path):
    """Set up, sign in, prepare, checklist, start, follow, two errors, stop, review; then the recording is judged."""
    place = kitchen(seconds=0)  # as long as it takes
    with (
        chromium() as browser,
        app_with_rig(tmp_path, place.host, camera=place.camera) as (url, invite),
    ):
        person = Person(browser, url)
        tablet = person.set_up(invite)
        page = tablet.page
        person.look_over(url)
        tablet.begin("Tea and toast", strategy="impromptu")
        tablet.checklist()
        page.locator(".dot.recording").wait_for()
        page.get_by_text("Recording · 0 min").wait_for()
        touched_ns = time.monotonic_ns()
        person.cook(tablet)
        assert page.locator(".planned").count() == 2
        tablet.tap("Finish", exact=True)
        tablet.screen("done")
        tablet.saved()
        assert tablet.problems == []
        (folder,) = [path.parent for path in (tmp_path / "data").glob("*/recording.json")]
        manifest = wait_for_end(folder)
        person.desk.goto(f"{url}desk")
        person.desk.get_by_text(folder.name).wait_for()
    assert (manifest["state"], manifest["pseudonym"], manifest["place"]) == ("complete", "Basil", "Kitchen 3")
    assert manifest["recipe"]["name"] == "tea_and_toast"
    events = [json.loads(line) for line in (folder / "events" / "tablet.jsonl").read_text().splitlines()]
    kinds = [event["kind"] for event in events]
    assert kinds.count("error") == 2
    assert kinds.count("done") == 4
    assert kinds.index("checked") < kinds.index("capture") < kinds.index("start") < kinds.index("error")
    assert all(
        touched_ns < event["host_ns"] < touched_ns + 90e9 and event["uncertainty_ns"] < 50e6
        for event in events
        if event["kind"] in ("start", "done", "error")
    )
    judged_like_any_other(folder)


def judged_like_any_other(folder: Path) -> None:
    """Verify, synchronize and report; both errors are in the pictures of both cameras and on the page."""
    assert json.loads(kitchensync("verify", folder, "--json").stdout)["corrupt"] == []
    done = kitchensync("sync", folder, "--json")
    assert done.returncode == 0, done.stdout
    placed = json.loads((folder / "sync" / "events.json").read_text())["events"]
    errors = [one["frames"] for one in placed if one["kind"] == "error"]
    assert [frames["gopro/video"]["frame"] is not None for frames in errors] == [True, True]
    for (
        frames
    ) in errors:  # a virtual headset on a busy computer falls behind, and sends its last picture early
        assert frames["hololens/pv"].get("why", "after the last picture") == "after the last picture"
    assert any(one["frames"]["hololens/pv"]["frame"] is not None for one in placed)
    assert kitchensync("report", folder).returncode == 0
    report = (folder / "sync" / "report.html").read_text()
    assert "error, Timing" in report
    assert "error, Measurement" in report
    assert "picture GX010001.MP4" in report


def let_begin(client: httpx.Client, desk: Desk, tablet: Program) -> None:
    """An admin at the desk lets a recording begin though points are open, and says why."""
    headers = {"x-kitchensync-login": desk.admin}
    body = {"op_id": operation_id(tablet.rng), "reason": "the mirror cannot be covered"}
    address = f"/api/v1/desk/recordings/{tablet.recording}/override"
    answer = client.post(address, json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    assert "mirrors" in answer.json()["override"]


def test_a_headset_that_is_not_there_is_a_refusal_in_words_and_leaves_nothing(
    runtime, tmp_path, loopback_host
):
    with (
        app_with_rig(tmp_path, loopback_host) as (url, invite),
        httpx.Client(base_url=url, timeout=90) as client,
    ):
        desk = Desk(client)
        tablet = Program(client, desk.set_up(invite, pseudonym="B"), random.Random(1))
        tablet.choose("tea_and_toast", None, 1)
        address = f"/api/v1/capture/{tablet.recording}"
        with pytest.raises(RuntimeError, match="409.*checklist is not through"):
            tablet.ask("POST", address, {"action": "start"})
        tablet.send("prepared", {})
        tablet.send("checked", {"version": "1", "confirmed_by": "C"})
        with pytest.raises(RuntimeError, match="409.*consent, jewellery"):
            tablet.ask("POST", address, {"action": "start"})
        with pytest.raises(RuntimeError, match="at the desk, by an admin"):
            tablet.send("checked", {"version": "1", "confirmed_by": "C", "override": "we hurry"})
        tablet.send("consent", {"version": tablet.checklist["consent"], "accepted": True})
        let_begin(client, desk, tablet)
        refused = tablet.ask("POST", address, {"action": "start"})
        assert refused["folder"] is None
        assert loopback_host in " ".join(refused["reasons"])
        assert tablet.ask("GET", f"/api/v1/health/{tablet.recording}")["health"] == "standalone"
    assert {path.name for path in (tmp_path / "data").iterdir()} == {"_app"}


def first_fault_ns(folder: Path) -> int:
    """Ask the recorder, without the app, until it calls something a fault; return when it first did."""

    def alarms() -> bool:
        state = ask(runtime_folder(folder) / "control", "state")
        return state is not None and any(one.severity == ALARM for one in findings_in(state))

    until(alarms, "the recorder calls it a fault")
    return time.monotonic_ns()


def ended(runtime: Path) -> None:
    """Wait until every recorder has gone: it looks for the films of a camera that is away."""
    until(lambda: not list(runtime.glob("kitchensync/*")), "the end of the recorder", limit_s=150)


def through_the_checklist(page) -> None:
    for box in page.get_by_role("checkbox").all():
        box.click()
    page.get_by_label("Pseudonym of the second person").fill("Clove")
    page.locator("#start").click()


def the_other(data: Path, known: Path) -> Path:
    """Wait for the folder of another recording."""

    def others() -> list[Path]:
        return [path.parent for path in data.glob("*/recording.json") if path.parent != known]

    return until(others, "another recording", limit_s=90)[0]


def test_both_devices_die_and_the_operator_ends_it_and_begins_again(kitchen, runtime, tmp_path):
    """The cook is told; what failed when, and who ended it, stands in the manifest; the desk starts the next one."""
    place = kitchen(seconds=0)
    with (
        chromium() as browser,
        app_with_rig(tmp_path, place.host, camera=place.camera) as (url, invite),
    ):
        person = Person(browser, url)
        tablet = person.set_up(invite)
        page, desk, data = tablet.page, person.desk, tmp_path / "data"
        call = page.locator(".alarm .call")
        page.remove_locator_handler(call)
        tablet.begin("Tea and toast")
        tablet.checklist()
        page.locator(".dot.recording").wait_for()
        tablet.tap("Begin", exact=True)
        (folder,) = [path.parent for path in data.glob("*/recording.json")]
        page.wait_for_timeout(4000)
        killed_ns = time.monotonic_ns()
        place.process.kill()  # the headset and the camera
        place.process.wait()
        fault_ns = first_fault_ns(folder)
        call.wait_for(timeout=30_000)
        glass_s = (time.monotonic_ns() - fault_ns) / 1e9
        print(
            f"a fault {(fault_ns - killed_ns) / 1e9:.2f} s after the kill, on the glass {glass_s:.2f} s later"
        )
        call.click()
        desk.goto(f"{url}desk")
        desk.get_by_role("link", name="Tea and toast").first.click()
        desk.get_by_role("button", name="Stop recording").click()
        desk.get_by_role("dialog").get_by_role("button", name="Stop recording").click()
        manifest = wait_for_end(folder)
        by, stopped = manifest["ended_by"], manifest["stopped"]
        assert (by["person"], stopped["reason"]) == ("admin", "requested")
        assert killed_ns < by["host_ns"] <= stopped["host_ns"]
        heard = {one["name"]: one["since_host_ns"] for one in by["faults"]}
        assert {name for name in heard if name.startswith("hololens/")}, by
        assert all(
            killed_ns - 2e9 < at < killed_ns + 2e9 for name, at in heard.items() if "hololens/" in name
        )
        assert any(problem.startswith("hololens: nothing came") for problem in manifest["problems"])
        assert "ended_by_device" not in json.dumps(manifest)
        ended(runtime)

        page.goto(f"{url}t/choose")  # the cook begins anew, and the devices are not there yet
        tablet.screen("choose")
        tablet.begin("Tea and toast")
        tablet.to_checklist()
        through_the_checklist(page)
        page.get_by_role("dialog", name="The recording did not start").wait_for(timeout=90_000)
        fresh = kitchen(seconds=0)
        rig = tmp_path / "rig.toml"
        rig.write_text(rig.read_text().replace(place.camera, fresh.camera))
        desk.goto(f"{url}desk/room")
        desk.locator(f'[data-card="{folder.name}"]').get_by_role("link", name="Read the card").click(
            timeout=60_000
        )
        desk.get_by_role("button", name="I have read it").click(timeout=90_000)
        desk.get_by_text("Read by admin").wait_for()
        desk.goto(f"{url}desk")
        desk.get_by_role("link", name="Tea and toast").first.click()
        desk.get_by_role("button", name="Start recording").click()
        desk.get_by_role("button", name="Stop recording").wait_for(timeout=90_000)
        second = the_other(data, folder)
        assert json.loads((second / "recording.json").read_text())["state"] == "recording"
        desk.get_by_role("button", name="Stop recording").click()
        desk.get_by_role("dialog").get_by_role("button", name="Stop recording").click()
        again = wait_for_end(second)
        ended(runtime)
    assert (again["ended_by"]["person"], again["ended_by"]["faults"], again["problems"]) == ("admin", [], [])

"""One thing done with many recordings at the desk: real commands, progress, and a refusal of its own for each row."""

from __future__ import annotations

import io
import json
import time
import zipfile
from collections.abc import Iterator
from typing import Any

import pytest
from browser import at_the_desk
from click.testing import CliRunner
from numbered_recording import write_numbered
from screens import serious

from kitchensync.cli import main
from kitchensync.recipe_app.exchange.desk_batches import outcome_of
from kitchensync.storage.manifest import edit_manifest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
BATCH = "/api/v1/desk/batch"


@pytest.fixture
def four(kitchen: Any) -> Iterator[dict[str, str]]:
    """A whole recording, one whose files are gone, one without devices, one that is withdrawn."""
    write_numbered(kitchen.data)
    with edit_manifest(kitchen.data / "take1") as manifest:
        kept, manifest["state"] = manifest["state"], "recording"
    kitchen.record("broken_1")
    ids = {"whole": kitchen.choose(folder="take1"), "broken": kitchen.choose(folder="broken_1")}
    ids |= {"bare": kitchen.choose(), "withdrawn": kitchen.choose()}
    named = {name: str(bundle["recording"]) for name, bundle in ids.items()}
    with edit_manifest(kitchen.data / "take1") as manifest:
        manifest["state"] = kept
    kitchen.record("broken_1", "stopped")
    kitchen.record("soup_1", "stopped")
    kitchen.agree(named["bare"], "release_raw")
    kitchen.post(kitchen.operation(named["withdrawn"], "withdraw", {}))
    yield named
    kitchen.tools.batches.close()


def ended(client: Any) -> dict[str, dict[str, str]]:
    """Wait until nothing is under way; return the rows by recording."""
    for _ in range(900):
        state = client.get(BATCH).json()
        if not state["busy"]:
            return {row["recording"]: row for row in state["rows"]}
        time.sleep(0.1)
    pytest.fail("it does not end")


def test_every_row_says_what_the_command_says_or_why_it_is_refused(
    kitchen: Any, four: dict[str, str]
) -> None:
    desk = kitchen.desk("researcher")
    answer = desk.post(BATCH, json={"verb": "verify", "recordings": [*four.values(), "nobody"]})
    assert answer.status_code == 200, answer.text
    at_once = {row["recording"]: row["state"] for row in answer.json()["rows"]}
    assert {at_once[four[name]] for name in ("bare", "withdrawn")} == {at_once["nobody"]} == {"refused"}
    rows = ended(desk)
    typed = CliRunner().invoke(main, ["verify", str(kitchen.data / "take1"), "--json"])
    said = json.loads(typed.stdout)
    whole = rows[four["whole"]]
    assert (whole["state"], whole["said"].split(";")[0]) == (
        "done" if typed.exit_code == 0 else "failed",
        said["status"],
    )
    assert rows[four["broken"]]["state"] in ("failed", "refused")
    assert rows[four["broken"]]["said"]
    assert rows[four["bare"]]["said"] == "nothing was recorded with devices"
    assert rows[four["withdrawn"]]["said"] == "it is withdrawn"


def test_nothing_is_begun_while_something_is_recorded_and_what_waits_can_be_given_up(
    kitchen: Any, four: dict[str, str]
) -> None:
    desk = kitchen.desk("researcher")
    kitchen.record("live_1")
    desk.post(BATCH, json={"verb": "verify", "recordings": [four["whole"], four["broken"]]})
    while {row["state"] for row in desk.get(BATCH).json()["rows"]} != {"held", "waiting"}:
        time.sleep(0.05)
    left = desk.post(BATCH + "/give-up", json={}).json()["rows"]
    assert {row["recording"]: row["state"] for row in left} == {
        four["whole"]: "held",
        four["broken"]: "refused",
    }
    assert not (kitchen.data / "take1" / "sync").exists()
    kitchen.record("live_1", "stopped")
    assert ended(desk)[four["whole"]]["state"] in ("done", "failed")


def test_logs_that_may_leave_come_in_one_file_which_names_the_others(
    kitchen: Any, four: dict[str, str]
) -> None:
    desk = kitchen.desk("researcher")
    alone = {name: desk.get(f"/desk/recordings/{id}/export.json") for name, id in four.items()}
    free = {name for name, answer in alone.items() if answer.status_code == 200}
    assert {"bare"} <= free < set(four)
    answer = desk.get("/api/v1/desk/exports/recordings", params={"recording": list(four.values())})
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        left = json.loads(archive.read("left_out.json"))
        logs = [json.loads(archive.read(name)) for name in archive.namelist() if name != "left_out.json"]
    assert [log["operations"] for log in logs] == [
        alone[name].json()["operations"] for name in four if name in free
    ]
    assert {one["recording"] for one in left} == {four[name] for name in set(four) - free}
    assert all(one["why"] for one in left)
    refused = desk.get("/api/v1/desk/exports/recordings", params={"recording": four["withdrawn"]})
    assert (refused.status_code, "nobody agreed" in refused.json()["error"]) == (409, True)


def test_chosen_by_ticks_and_followed_in_a_browser(kitchen: Any, browser: Any, four: dict[str, str]) -> None:
    desk = at_the_desk(browser, kitchen.url, kitchen.desk("researcher").headers["x-kitchensync-login"])
    page = desk.page
    desk.go()
    desk.tap("Do it")
    page.get_by_text("Choose at least one line first.").wait_for()
    page.get_by_label("All of this page").check()
    page.get_by_text("4 chosen").wait_for()
    page.get_by_label("What", exact=True).select_option(label="Verify")
    desk.tap("Do it")
    progress = page.locator("#batch-progress tbody tr")
    progress.nth(3).wait_for()
    page.locator("#batch-progress button").wait_for(state="hidden", timeout=90_000)
    states = [row.get_attribute("data-state") for row in progress.all()]
    assert sorted(states)[-2:] == ["refused", "refused"]
    assert serious(page) == []
    page.get_by_label("What", exact=True).select_option(label="See what was agreed to")
    desk.tap("Do it")
    line = page.locator(f'tr[data-recording="{four["bare"]}"]')
    line.get_by_text("yes", exact=True).wait_for()
    assert page.locator("tbody tr").count() == 4
    assert serious(page) == []
    line.get_by_role("link", name="Tea and toast").or_(line.get_by_role("link").first).first.click()
    for link in ("Recipe", "Basil", "Lab kitchen"):  # both ways
        there = page.get_by_role("link", name=link, exact=True)
        address = page.url
        there.click()
        page.wait_for_url(lambda url, address=address: url != address)
        if "/desk/recipes/" in page.url:
            page.get_by_role("link", name="Its recordings").click()
        page.locator(f'a[href="/desk/recordings/{four["bare"]}"]').first.wait_for()
        page.goto(address)
    assert desk.problems == []
    page.context.close()


@pytest.mark.parametrize(
    ("code", "said", "state", "words"),
    [
        (0, '{"status": "PASS", "reasons": []}', "done", "PASS"),
        (1, '{"status": "FAIL", "reasons": ["a", "b"]}', "failed", "FAIL; a; b"),
        (1, '{"status": "refused", "reason": "it is withdrawn"}', "refused", "it is withdrawn"),
        (-9, "", "failed", "the command ended with -9"),
        (1, '{"half', "failed", "the command ended with 1"),
    ],
)
def test_how_a_command_ended_is_told_by_what_it_printed(code: int, said: str, state: str, words: str) -> None:
    assert outcome_of(code, said) == (state, words)

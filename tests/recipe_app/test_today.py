"""What ended today: its verdict, what is to be done next, and that nothing unchanged is read again."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest
from browser import at_the_desk
from screens import fit_to_be_shown

from kitchensync.recipe_app.exchange import folders
from kitchensync.storage.manifest import edit_manifest
from kitchensync.storage.recording_files.kept_session_card import keep_cards

DAY_NS = 86_400 * 10**9


def ended(kitchen: Any, name: str, status: str = "", *, days: int = 0, **more: Any) -> str:
    """A recording that ended today, or days ago, with the card that it has; return its id."""
    path: Path = kitchen.record(name)
    recording = str(kitchen.choose(folder=name)["recording"])
    with edit_manifest(path) as manifest:
        at = {"utc_ns": kitchen.utc_ns - days * DAY_NS, "host_ns": 1}
        manifest |= {"state": "complete", "started": at, "stopped": at | {"reason": "requested"}} | more
    if status:
        nothing: dict[str, Any] = {key: [] for key in ("repeat", "lines", "thumbnails", "events")}
        card = nothing | {"stage": "final", "status": status, "session_s": 9, "alignment": None}
        keep_cards(path, {"final": card})
    kitchen.utc_ns += 10**6
    return recording


@pytest.fixture
def today(kitchen: Any) -> list[str]:
    """Five that ended today, one that was taken back, and two of last week: one read, the newest of all not."""
    noon = (*time.localtime()[:3], 12, 0, 0, 0, 0, -1)  # of this day, far from both midnights
    kitchen.utc_ns = round(time.mktime(noon)) * 10**9
    read = {"by": "Clove", "stage": "final"}
    return [
        ended(kitchen, "old", "PASS", days=7, card=read | {"status": "PASS"}),
        ended(kitchen, "good", card=read | {"status": "PASS"}),
        ended(kitchen, "poor", "WARN"),
        ended(kitchen, "burnt", abandoned={"reason": "the pan burnt", "host_ns": 1}),
        ended(kitchen, "mine", withdrawn={"utc_ns": 1}),
        ended(kitchen, "fails", "FAIL"),
        ended(kitchen, "other_day", days=3),
        ended(kitchen, "unread", "PASS", days=6),
    ]


def test_what_ended_today_is_told_newest_first_and_read_once(
    kitchen: Any, today: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = kitchen.record("by_command")
    with edit_manifest(elsewhere) as manifest:
        manifest |= {"started": {"utc_ns": kitchen.utc_ns}, "pseudonym": "Dill", "place": "South"}
    alone = str(kitchen.choose()["recording"])
    kitchen.post(kitchen.operation(alone, "claim", {}), kitchen.operation(alone, "end", {}))
    operator = kitchen.desk("operator")
    told = operator.get("/api/v1/desk/room").json()["ended"]
    said = [
        (one["folder"], one["state"], one["status"], one["to_read"])
        for one in told
        if one["state"] != "alone"
    ]
    assert said == [
        *(("by_command", "open", None, False), ("fails", "made", "FAIL", False)),
        *(("mine", "withdrawn", None, False), ("burnt", "aborted", None, False)),
        *(("poor", "made", "WARN", False), ("good", "made", "PASS", False)),
        *(("unread", "made", "PASS", True),),
    ]
    assert [one["id"] for one in told if one["state"] == "alone"] == [alone]
    by_command = next(one for one in told if one["folder"] == "by_command")
    assert (by_command["id"], by_command["person"], by_command["kitchen"]) == (None, "Dill", "South")
    assert kitchen.tools.cards.rows() == [], "all have their cards, and those of other days are let alone"
    burnt = next(one for one in told if one["state"] == "aborted")
    assert (burnt["reason"], burnt["steps_done"], burnt["steps"]) == ("the pan burnt", 0, 11)
    assert (burnt["title"], burnt["person"], burnt["kitchen"]) == ("Tea and toast", "Basil", "Lab kitchen")

    reads: list[Path] = []
    monkeypatch.setattr(folders, "read_manifest", reads.append)
    assert operator.get("/api/v1/desk/room").json()["ended"] == told
    assert reads == []


@pytest.mark.slow
def test_the_page_says_what_each_is_worth_and_what_to_do_next(
    kitchen: Any, today: list[str], browser: Any
) -> None:
    for path in kitchen.data.glob("*/recording.json"):
        with edit_manifest(path.parent) as manifest:
            manifest |= {"consent": "c/1", "consent_scopes": ["annotate", "release_raw"]}
    login = kitchen.desk("operator").headers["x-kitchensync-login"]
    page = at_the_desk(browser, kitchen.url, login).page
    page.goto(f"{kitchen.url}/desk/room")
    rows = page.locator("#ended tbody tr")
    rows.get_by_text("aborted: 0 of 11 steps").wait_for()
    assert page.get_by_role("heading", name="Today", exact=True).count() == 1
    assert rows.get_by_text("the pan burnt").is_visible()
    assert rows.locator(".badge").all_inner_texts() == [
        *("FAIL", "aborted: 0 of 11 steps", "WARN", "PASS", "PASS"),
    ]
    fit_to_be_shown(page)
    read = page.get_by_role("link", name="Read the card")
    colours = "(it) => [getComputedStyle(it).color, getComputedStyle(it).backgroundColor]"
    assert len(set(read.evaluate(colours))) == 2
    read.click()
    page.wait_for_url(f"**/desk/recordings/{today[-1]}/card")
    page.get_by_role("button", name="I have read it").click()
    page.get_by_text("Read by operator").wait_for()
    page.goto(f"{kitchen.url}/desk/room")
    rows.get_by_text("aborted").wait_for()
    assert page.get_by_role("link", name="Read the card").count() == 0
    assert rows.count() == 5


@pytest.mark.parametrize(
    ("role", "first", "above", "below"),
    [
        (
            "admin",
            "/desk/room",
            ["Today", "Recordings", "Work", "Recipes", "Study", "Setup"],
            ["People", "Kitchens and tablets", "Log", "This browser"],
        ),
        (
            "operator",
            "/desk/room",
            ["Today", "Recordings", "Recipes", "Study", "Setup"],
            ["People", "Kitchens and tablets", "This browser"],
        ),
        ("annotator", "/desk/review", ["Work", "Setup"], ["This browser"]),
    ],
)
def test_everybody_begins_where_their_work_is_and_finds_the_rest(
    kitchen: Any, role: str, first: str, above: list[str], below: list[str]
) -> None:
    client = kitchen.desk(role)
    start = client.get("/")
    assert (start.status_code, start.headers["location"]) == (303, first)
    page = client.get("/doctor").text
    bars = [re.findall(r"<a [^>]*>([^<]+)</a>", bar) for bar in re.findall(r"(?s)<nav.*?</nav>", page)]
    assert bars == [above, below]
    assert client.get(first).text.count('aria-current="page"') == 1

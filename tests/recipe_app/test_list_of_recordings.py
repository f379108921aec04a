"""The desk's list of recordings and its log, searched and filtered: what is shown is what a filter by hand finds."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_runs import examples
from screens import fit_to_be_shown

from kitchensync.recipe_app.store import tables
from kitchensync.recipe_app.store.app_records import new_id
from kitchensync.recipe_app.web.desk import pages_overview

pytestmark = pytest.mark.slow

ROW = re.compile(r'<td><a href="/desk/recordings/([0-9a-f-]{36})"')
KIND = re.compile(r'<td><a href="\?subject=[^"]*">(.*?)</a></td>')
WHO = ("Basil", "Clove_2", "A%b")
RECIPES = ("tea_and_toast", "yogurt_bowl", "100% rye")


@pytest.fixture
def listed(kitchen: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """Thirty recordings of some recipes, people and strategies; seven on a page."""
    monkeypatch.setattr(pages_overview, "PAGE", 7)
    people = {name: kitchen.tools.accounts.add_person(name, ["participant"], actor="") for name in WHO}
    rows = []
    for n in range(30):
        row = {
            "id": new_id(kitchen.utc_ns),
            "folder": f"take_{n}" if n % 4 else None,
            "recipe": RECIPES[n % 3],
            "person": people[WHO[n % 2 + n % 5 // 4]],
            "strategy": ("normal", "induced")[n % 2],
            "phase": ("done", "review", "withdrawn")[n % 3],
            "created_utc_ns": 10**18 + n,
            "errors": n % 6,
        }
        numbers = {one.name: 0 for one in tables.recording.columns if "INT" in str(one.type).upper()}
        texts = {one.name: "" for one in tables.recording.columns if one.name not in numbers}
        rows.append(texts | numbers | row)
    with kitchen.tools.records.changing() as connection:
        connection.execute(tables.recording.insert(), rows)
    return {
        row["id"]: row | {"pseudonym": next(k for k, v in people.items() if v == row["person"])}
        for row in rows
    }


def shown(desk: Any, **asked: str) -> list[str]:
    """The recordings on all pages, in order."""
    found: list[str] = []
    for page in range(1, 9):
        answer = desk.get("/desk", params={**asked, "page": page})
        assert answer.status_code == 200
        found += ROW.findall(answer.text)
    return found


def by_hand(rows: dict[str, dict[str, Any]], q: str, sort: str, **equal: str) -> list[str]:
    words = q.replace("_", " ").lower().split()
    kept = [
        row
        for row in rows.values()
        if all(not value or row[name] == value for name, value in equal.items())
        and all(
            any(word in str(row[name] or "").lower() for name in ("recipe", "folder", "pseudonym"))
            for word in words
        )
    ]
    keys: dict[str, Any] = {
        "newest": lambda row: (-row["created_utc_ns"], row["id"]),
        "oldest": lambda row: (row["created_utc_ns"], row["id"]),
        "recipe": lambda row: (row["recipe"], row["id"]),
        "errors": lambda row: (-row["errors"], row["id"]),
    }
    return [row["id"] for row in sorted(kept, key=keys[sort])]


@pytest.mark.slow
def test_any_search_finds_what_a_filter_by_hand_finds(
    kitchen: Any, listed: dict[str, dict[str, Any]]
) -> None:
    desk = kitchen.desk("researcher")

    @examples(15)
    @given(
        st.sampled_from(["", "tea", "TEA toast", "take_1", "100%", "clove", "%", "nothing at all"]),
        st.sampled_from(["", "normal", "induced"]),
        st.sampled_from(["", "done", "withdrawn"]),
        st.sampled_from(["newest", "oldest", "recipe", "errors"]),
    )
    def search(q: str, strategy: str, phase: str, sort: str) -> None:
        wanted = by_hand(listed, q, sort, strategy=strategy, phase=phase)
        assert shown(desk, q=q, strategy=strategy, phase=phase, sort=sort) == wanted

    search()


def test_the_log_is_filtered_by_person_device_and_recording(kitchen: Any) -> None:
    recording = kitchen.choose()["recording"]
    kitchen.post(kitchen.operation(recording, "mark", {"text": "here"}))
    kitchen.tools.accounts.add_person("Clove", ["participant"], actor="")
    admin = kitchen.desk("admin")
    assert {"<code>person</code>", "Moment marked"} <= set(KIND.findall(admin.get("/desk/audit").text))
    part = admin.get("/desk/audit", params={"subject": recording}).text
    assert set(KIND.findall(part)) == {"Recipe chosen", "Moment marked"}
    assert f'href="/desk/recordings/{recording}"' in part
    mine = KIND.findall(admin.get("/desk/audit", params={"actor": kitchen.basil}).text)
    assert "Moment marked" in mine
    assert "<code>kitchen</code>" not in mine


@pytest.mark.slow
def test_the_filters_are_used_by_keyboard_and_fit(kitchen: Any, listed: dict[str, dict[str, Any]]) -> None:
    from browser import at_the_desk, chromium

    from kitchensync.recipe_app.web.door.access import LOGIN_HEADER

    with chromium() as browser:
        desk = at_the_desk(browser, kitchen.url, kitchen.desk("researcher").headers[LOGIN_HEADER])
        desk.go()
        desk.page.get_by_text("30 recordings").wait_for()
        assert desk.page.get_by_text("1 of 5").is_visible()
        desk.follow("Next")
        desk.page.get_by_text("2 of 5").wait_for()
        desk.page.get_by_label("Search").fill("yogurt")
        desk.page.keyboard.press("Enter")
        desk.page.get_by_text("10 recordings").wait_for()
        fit_to_be_shown(desk.page)
        assert desk.page.get_by_label("Search").input_value() == "yogurt"
        assert desk.problems == []

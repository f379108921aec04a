"""A plan in the app: the next session is offered first, begun by one touch, and by one tablet."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from browser import at_the_desk, on_screen
from screens import fit_to_be_shown, serious

from recipe_app.cooking import next_sessions
from recipe_app.store.app_records import new_id
from recipe_app.web.access import LOGIN_HEADER

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def entry(kitchen: Any, hours: float, **more: Any) -> dict[str, Any]:
    """A session of the plan, so many hours from now."""
    now = datetime.fromtimestamp(kitchen.utc_ns / 1e9, UTC)
    said = {
        "recipe": "tea_and_toast",
        "strategy": "normal",
        "display": "paragraph",
        "person": "Basil",
        "kitchen": "Kitchen 1",
        "start": (now + timedelta(hours=hours)).isoformat(),
        "minutes": 60,
        "order": [],
    }
    return said | more


def take_in(kitchen: Any, *entries: dict[str, Any]) -> list[str]:
    body = {"schema": "study-plan/1", "sessions": list(entries)}
    answer = kitchen.desk("operator").post("/api/v1/desk/plan", json=body)
    assert (answer.status_code, answer.json()) == (200, {"sessions": len(entries)})
    return [one.session for one in next_sessions.sessions_of(kitchen.tools.records)]


def begin(tablet: Any, kitchen: Any, session: str, op_id: str = "") -> Any:
    body = {"op_id": op_id or new_id(kitchen.utc_ns), "recipe": "yogurt_bowl", "session": session}
    return tablet.post("/api/v1/recordings", json=body)


def test_a_persons_next_sessions_are_theirs_near_and_not_begun(kitchen: Any) -> None:
    tablet = kitchen.tablet
    entries = [entry(kitchen, 5), entry(kitchen, 1), entry(kitchen, -20), entry(kitchen, 2, person="Clove")]
    take_in(kitchen, *entries)
    found = tablet.get("/api/v1/next").json()["sessions"]
    starts = [datetime.fromisoformat(one["start"]) for one in found]
    assert starts == [datetime.fromisoformat(entries[number]["start"]) for number in (1, 0)]
    assert begin(tablet, kitchen, found[0]["session"]).status_code == 200
    assert [one["session"] for one in tablet.get("/api/v1/next").json()["sessions"]] == [found[1]["session"]]
    take_in(kitchen, *entries)  # the plan taken in again: what was begun stays begun
    assert len(tablet.get("/api/v1/next").json()["sessions"]) == 1


def test_a_session_gives_recipe_strategy_display_and_order(kitchen: Any) -> None:
    tablet = kitchen.tablet
    graph = kitchen.tools.shelf.get("tea_and_toast").graph
    drawn = kitchen.choose(recipe="tea_and_toast", seed=77)
    order = kitchen.tools.records.frozen(drawn["recording"])["order"]
    good, old = take_in(kitchen, entry(kitchen, 1, order=order), entry(kitchen, 2, order=[1, 2]))
    for session in (good, old):
        recording = begin(tablet, kitchen, session).json()["recording"]
        frozen = kitchen.tools.records.frozen(recording)
        assert (frozen["name"], frozen["strategy"], frozen["display"]) == (
            "tea_and_toast",
            "normal",
            "paragraph",
        )
        assert (frozen["session"], sorted(frozen["order"])) == (session, [step.node for step in graph.steps])
        assert (frozen["order"] == order) == (session == good)  # one of another version is drawn anew
    other = entry(kitchen, 3, person="Clove")
    (theirs,) = [s for s in take_in(kitchen, other) if s not in (good, old)]
    assert begin(tablet, kitchen, theirs).status_code == 404


def test_two_tablets_want_one_session_and_one_has_it(kitchen: Any) -> None:
    first, second = kitchen.tablet, kitchen.second_tablet()
    (session,) = take_in(kitchen, entry(kitchen, 1))
    ids = [new_id(kitchen.utc_ns), new_id(kitchen.utc_ns)]
    with ThreadPoolExecutor(2) as pool:
        tablets = zip((first, second), ids, strict=True)
        wanted = [pool.submit(begin, tablet, kitchen, session, op_id) for tablet, op_id in tablets]
        answers = [one.result() for one in wanted]
    assert sorted(answer.status_code for answer in answers) == [200, 409]
    refused = next(answer.json()["error"] for answer in answers if answer.status_code == 409)
    assert refused.startswith("this session was begun on another tablet")
    ops = [op for op in kitchen.tools.records.ops(session) if op["kind"] == "session"]
    assert len(ops) == 1
    winner = 0 if answers[0].status_code == 200 else 1
    again = begin((first, second)[winner], kitchen, session, ids[winner])
    assert again.status_code == 200  # asked once more by who has it: the same recording


def test_what_was_chosen_instead_is_counted(kitchen: Any) -> None:
    (session, later) = take_in(kitchen, entry(kitchen, 1), entry(kitchen, 60))
    instead = kitchen.choose(recipe="yogurt_bowl")["recording"]
    assert kitchen.tools.records.frozen(instead)["instead_of"] == session
    assert begin(kitchen.tablet, kitchen, session).status_code == 200
    free = kitchen.choose(recipe="yogurt_bowl")["recording"]
    assert "instead_of" not in kitchen.tools.records.frozen(free)  # the other one is days away
    assert later


def test_the_plan_says_how_far_the_study_is_and_leads_to_the_recordings(kitchen: Any) -> None:
    goals = [
        {"recipe": "tea_and_toast", "strategy": "normal", "count": 2, "display": "paragraph"},
        {"recipe": "tea_and_toast", "strategy": "normal", "count": 1},
        {"recipe": "yogurt_bowl", "strategy": "induced", "count": 1},
    ]
    body = {"schema": "study-plan/1", "sessions": [entry(kitchen, 1), entry(kitchen, 9)], "goals": goals}
    desk = kitchen.desk("researcher")
    assert kitchen.desk("operator").post("/api/v1/desk/plan", json=body).status_code == 200
    first = next_sessions.sessions_of(kitchen.tools.records)[0].session
    recording = begin(kitchen.tablet, kitchen, first).json()["recording"]
    cells = next_sessions.cells_of(kitchen.tools.records)
    assert (cells["tea_and_toast", "normal"].wanted, cells["tea_and_toast", "normal"].planned) == (3, 1)
    assert "0 of 3" in desk.get("/desk/plan").text
    kitchen.post(kitchen.operation(recording, "finish", {}))
    page = desk.get("/desk/plan").text
    assert ("1 of 3" in page, "1 planned" in page, page.count("1 missing")) == (True, True, 2)
    link = "/desk?q=tea_and_toast&amp;strategy=normal"
    assert link in page
    assert recording in desk.get(link.replace("&amp;", "&")).text
    other = kitchen.choose(recipe="tea_and_toast")["recording"]
    kitchen.post(kitchen.operation(other, "withdraw", {}))
    cell = next_sessions.cells_of(kitchen.tools.records)["tea_and_toast", "normal"]
    assert (cell.cooked, cell.withdrawn) == (1, 1)


@pytest.mark.parametrize("wrong", [{"minutes": 0}, {"start": "soon"}, {"more": 1}])
def test_what_is_no_plan_is_refused_in_words(kitchen: Any, wrong: dict[str, Any]) -> None:
    body = {"schema": "study-plan/1", "sessions": [entry(kitchen, 1) | wrong]}
    answer = kitchen.desk("operator").post("/api/v1/desk/plan", json=body)
    assert answer.status_code in (400, 422)
    assert "no plan that `study plan` wrote" in answer.json()["error"]
    assert next_sessions.sessions_of(kitchen.tools.records) == []


def test_a_plan_is_taken_in_at_the_desk_and_begun_by_one_touch(
    kitchen: Any, browser: Any, tmp_path: Path
) -> None:
    kitchen.ticking = True
    first = entry(kitchen, 1)
    (tmp_path / "plan.json").write_text(
        json.dumps({"schema": "study-plan/1", "sessions": [first, entry(kitchen, 9)]})
    )
    desk = at_the_desk(browser, kitchen.url, kitchen.desk("operator").headers[LOGIN_HEADER])
    desk.go("/plan")
    desk.page.get_by_text("No plan was taken in yet").wait_for()
    desk.page.get_by_label("File").set_input_files(tmp_path / "plan.json")
    desk.tap("Take in a plan")
    desk.page.get_by_role("row").nth(2).wait_for()
    fit_to_be_shown(desk.page)
    with on_screen(kitchen, browser) as tablet:
        section = tablet.page.locator("#planned")
        section.get_by_role("heading", name="Your next session").wait_for()
        assert section.get_by_role("button").count() == 1
        assert serious(tablet.page) == []
        section.get_by_role("button", name="Tea and toast").click()
        tablet.instructed()
        tablet.screen("checklist")
        recording = tablet.page.url.split("/")[-2]
        assert kitchen.tools.records.frozen(recording)["display"] == "paragraph"
    desk.page.reload()
    assert desk.page.get_by_role("link", name="begun").count() == 1
    assert desk.problems == []

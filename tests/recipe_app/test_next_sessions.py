"""A plan in the app: the next session is offered first, begun by one touch, and by one tablet."""

from __future__ import annotations

import dataclasses
import html
import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from browser import at_the_desk, on_screen
from rigs import Rig
from screens import fit_to_be_shown, serious
from small_recordings import write_manifest

from kitchensync.recipe_app.cooking.steering import steer
from kitchensync.recipe_app.store.app_records import new_id
from kitchensync.recipe_app.study import next_sessions
from kitchensync.recipe_app.web.door.access import LOGIN_HEADER
from kitchensync.storage.manifest import edit_manifest

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


def test_two_who_take_in_a_plan_at_once_and_the_second_is_refused(kitchen: Any) -> None:
    first, second = kitchen.desk("operator"), kitchen.desk("admin")
    take_in(kitchen, entry(kitchen, 1))
    seen, _ = next_sessions.kept_plan(kitchen.tools.records)
    bodies = [
        {"schema": "study-plan/1", "sessions": [entry(kitchen, hours)], "seen": seen} for hours in (2, 3)
    ]
    with ThreadPoolExecutor(2) as pool:
        sent = [
            pool.submit(desk.post, "/api/v1/desk/plan", json=body)
            for desk, body in zip((first, second), bodies, strict=True)
        ]
        answers = [one.result() for one in sent]
    assert sorted(answer.status_code for answer in answers) == [200, 409]
    won = next(number for number, answer in enumerate(answers) if answer.status_code == 200)
    assert "somebody else changed the plan" in answers[1 - won].json()["error"]
    (stands,) = next_sessions.sessions_of(kitchen.tools.records)
    assert stands.entry.start == datetime.fromisoformat(bodies[won]["sessions"][0]["start"])


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


def test_a_session_whose_recording_was_aborted_is_offered_again_and_begun_once(kitchen: Any) -> None:
    rig = Rig(kitchen)
    tools = dataclasses.replace(kitchen.tools, capture=rig)
    (session,) = take_in(kitchen, entry(kitchen, 1))
    first = begin(kitchen.tablet, kitchen, session).json()["recording"]
    assert kitchen.tablet.get("/api/v1/next").json()["sessions"] == []
    kitchen.record("burnt")
    kitchen.tools.records.give_folder(first, "burnt", actor="")
    rig.refuses = ["nobody answers"]
    steer(tools, first, "abort", actor=kitchen.basil, reason="the pan burnt")
    assert kitchen.tablet.get("/api/v1/next").json()["sessions"] == []  # it goes on
    rig.refuses = []
    steer(tools, first, "abort", actor=kitchen.basil, reason="the pan burnt")
    (offered,) = kitchen.tablet.get("/api/v1/next").json()["sessions"]
    assert offered["session"] == session
    second = begin(kitchen.tablet, kitchen, session)
    assert second.status_code == 200
    assert next_sessions.taken(kitchen.tools.records) == {session: second.json()["recording"]}
    steer(tools, first, "abort", actor=kitchen.basil, reason="again")  # takes nothing from the second
    assert kitchen.tablet.get("/api/v1/next").json()["sessions"] == []
    assert begin(kitchen.tablet, kitchen, session).status_code == 409


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
        if session == good:
            assert frozen["order"] == order  # that of another version is drawn anew, by chance even the same
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


STUDY = """
goals = [{ recipe = "tea_and_toast", strategy = "normal", count = 2 }]
[study]
zone = "UTC"
begin = 2026-09-20
days = 14
[people.Basil]
hours = ["mon-sun 00:00-23:00"]
[people.Nobody]
hours = ["mon-sun 00:00-23:00"]
[kitchens.Kitchen]
hours = ["mon-sun 00:00-23:00"]
"""


def cook(kitchen: Any, name: str) -> None:
    """A finished recording on the disk, as capture leaves it."""
    (kitchen.data / name).mkdir()
    write_manifest(kitchen.data / name, {}, {})
    with edit_manifest(kitchen.data / name) as manifest:
        manifest |= {"state": "complete", "pseudonym": "Basil", "place": "Kitchen"}
        manifest |= {"recipe": {"name": "tea_and_toast", "order": [1]}, "script": {"strategy": "normal"}}
        manifest["script"]["display"] = "steps"
        manifest["started"] = {"utc_ns": kitchen.utc_ns - 86_400 * 10**9, "host_ns": 1}


def save(desk: Any, study: str, seen: int, *locked: str) -> Any:
    return desk.post("/api/v1/desk/study", json={"study": study, "seen": seen, "locked": list(locked)})


def test_a_study_is_planned_at_the_desk_from_what_was_recorded(kitchen: Any) -> None:
    desk, other = kitchen.desk("operator"), kitchen.desk("admin")
    assert kitchen.basil
    cook(kitchen, "take-1")
    answer = save(desk, STUDY, 0)
    assert (answer.status_code, answer.json()) == (200, {"sessions": 1, "unmet": []})
    number, kept = next_sessions.kept_plan(kitchen.tools.records)
    assert kept["notes"][0] == "Nobody has no account here or withdrew: no session is planned for them"
    (planned,) = next_sessions.sessions_of(kitchen.tools.records)
    assert planned.entry.start.timestamp() >= kitchen.utc_ns / 1e9  # nothing is planned behind us
    assert save(other, STUDY.replace("count = 2", "count = 3"), number).json()["sessions"] == 2
    refused = save(desk, STUDY.replace("count = 2", "count = 4"), number)  # seen before the other's
    assert refused.status_code == 409
    assert "somebody else changed the plan" in refused.json()["error"]
    last, kept = next_sessions.kept_plan(kitchen.tools.records)
    assert "count = 3" in kept["study"]
    first = next_sessions.sessions_of(kitchen.tools.records)[0]
    assert save(desk, STUDY, last, first.session).status_code == 200
    (stays,) = next_sessions.sessions_of(kitchen.tools.records)
    assert (stays.session, stays.entry.locked) == (first.session, True)
    wrong = save(desk, "goals = 3", next_sessions.kept_plan(kitchen.tools.records)[0])
    assert (wrong.status_code < 500, "study: " in wrong.json()["error"]) == (True, True)


def test_what_somebody_avoids_is_not_planned_for_them(kitchen: Any) -> None:
    desk = kitchen.desk("operator")
    bands = {"person": kitchen.basil, "avoids": "bread, peanut", "hand": "left", "gender": "woman"}
    assert desk.post("/api/v1/desk/bands", json=bands).status_code == 200
    graph = kitchen.tools.shelf.get("tea_and_toast").graph
    assert any("bread" in step.text.lower() for step in graph.steps)
    (unmet,) = save(desk, STUDY, 0).json()["unmet"]
    assert "nobody may cook tea_and_toast" in unmet["reason"]


def test_coverage_counts_the_folders_and_each_cell_leads_to_them(kitchen: Any) -> None:
    desk = kitchen.desk("operator")
    assert kitchen.basil
    assert "No study is kept here" in desk.get("/desk/coverage").text
    assert save(desk, STUDY, 0).status_code == 200
    cook(kitchen, "take-1")
    page = desk.get("/desk/coverage").text
    link = "/desk/coverage?by=recipe&by=strategy&row=tea_and_toast%7Cnormal&stage=recorded"
    assert f"{link}#chosen" in html.unescape(page)
    assert '<rect class="recorded" x="1" y="3" width="50.0"' in page  # one of two
    assert "take-1" in desk.get(link).text
    rows = desk.get("/desk/coverage.csv?by=recipe&by=person").text.splitlines()
    assert rows[0].startswith("recipe,person,wanted,planned,recorded")
    assert rows[1].startswith("tea_and_toast,,2,0,0")  # wanted of anybody
    assert rows[2].startswith("tea_and_toast,Basil,0,2,1")
    assert "<svg" in desk.get("/desk/coverage.svg").text
    assert "BEGIN:VEVENT" in desk.get("/desk/plan.ics").text
    assert "tea and toast · normal" in desk.get("/desk/plan.html").text


@pytest.mark.parametrize(
    "wrong", [{"minutes": 0}, {"start": "soon"}, {"start": "2026-09-21T10:00:00"}, {"more": 1}]
)
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
    desk.page.get_by_label("File", exact=True).set_input_files(tmp_path / "plan.json")
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

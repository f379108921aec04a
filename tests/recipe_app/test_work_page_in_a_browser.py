"""The queue of work at the desk: many recordings are given to people at once, and one leads to the next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from browser import Desk, at_the_desk
from screens import fit_to_be_shown

from kitchensync.recipe_app.review.marks import STEPS
from kitchensync.recipe_app.review.rounds import round_of
from kitchensync.recipe_app.store import tables
from kitchensync.storage.manifest import edit_manifest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
MANY = 20


@pytest.fixture
def cooked(kitchen: Any) -> list[str]:
    """Twenty recordings in review that may be annotated, and one that may not; the newest last."""
    made = []
    for number in range(MANY + 1):
        kitchen.utc_ns += 10**9
        recording, folder = str(kitchen.choose()["recording"]), f"take_{number}"
        kitchen.record(folder, "stopped")
        with edit_manifest(kitchen.data / folder) as manifest:
            manifest |= {"files": {}, "streams": {}, "devices": {}}
            manifest |= {"consent": "c/1", "consent_scopes": ["annotate"] if number else []}
        kitchen.tools.records.give_folder(recording, folder, actor="")
        kitchen.post(kitchen.operation(recording, "end", {}))
        kitchen.tools.intake.file()
        made.append(recording)
    return made


@pytest.fixture
def desk(kitchen: Any, browser: Any) -> Iterator[Desk]:
    """The desk of a researcher."""
    login = kitchen.desk("researcher").headers["x-kitchensync-login"]
    made = at_the_desk(browser, kitchen.url, login)
    yield made
    assert made.problems == []
    made.page.context.close()


def test_twenty_recordings_are_given_to_two_people_in_six_touches(
    kitchen: Any, desk: Desk, cooked: list[str]
) -> None:
    annotators = {
        name: kitchen.tools.accounts.add_person(name, ["annotator"], actor="") for name in ("Anise", "Dill")
    }
    page, touches = desk.page, []
    page.context.expose_function("touched", lambda: touches.append(1))
    page.context.add_init_script("document.addEventListener('pointerdown', () => window.touched(), true)")
    desk.go("/review")
    page.locator("#queue tbody tr").nth(MANY - 1).wait_for()
    assert page.locator("#queue tbody tr").count() == MANY  # who cooked the other one did not agree
    assert page.locator("#queue .badge", has_text="No consent to release").count() == MANY
    fit_to_be_shown(page)
    page.get_by_label("All of this page").click()
    page.get_by_role("button", name="Ask them").click()  # nobody: it would be closed to everybody
    page.get_by_text("Tick who shall do it").wait_for()
    touches.clear()
    page.get_by_label("Anise").click()
    page.get_by_label("Dill").click()
    with page.expect_event("load"):
        page.get_by_role("button", name="Ask them").click()
    assert len(touches) == 3  # and all of the page
    assert page.locator("#queue tr[data-state=open]").count() == MANY
    for recording in cooked[1:]:
        people = round_of(kitchen.tools.records.ops(recording), STEPS).people
        assert set(people) == set(annotators.values())
    assert round_of(kitchen.tools.records.ops(cooked[0]), STEPS).people == {}
    page.get_by_role("link", name="Not begun 0").click()
    page.get_by_text("Nothing is left here.").wait_for()
    fit_to_be_shown(page)


def test_errors_are_given_to_those_who_may_know_them(kitchen: Any, desk: Desk, cooked: list[str]) -> None:
    kitchen.tools.accounts.add_person("Anise", ["annotator"], actor="")
    page = desk.page
    desk.go("/review?show=all")
    page.locator("[name=chosen]").first.check()
    page.get_by_label("What", exact=True).select_option("errors")
    page.get_by_label("Anise").wait_for(state="hidden")
    page.locator("fieldset:visible input[name=people]").first.check()
    with page.expect_event("load"):
        page.get_by_role("button", name="Ask them").click()
    [asked] = [op for op in kitchen.tools.records.ops(cooked[-1]) if op["kind"] == "assign_review"]
    assert asked["body"]["what"] == "errors"


def test_one_who_marks_is_led_from_recording_to_recording(kitchen: Any, cooked: list[str]) -> None:
    """An annotator sees what is for them, and nothing of errors; the next one is the one below it in the queue."""
    first, second, third = reversed(cooked[-3:])
    client = kitchen.desk("annotator")
    me = next(row["id"] for row in kitchen.tools.records.rows(tables.person) if "annotator" in row["roles"])
    researcher = kitchen.desk("researcher")
    others = cooked[:-3]
    asked = researcher.post(
        "/api/v1/desk/assign", json={"what": "steps", "recordings": [first, second, third], "people": [me]}
    )
    assert asked.json() == {"asked": 3, "refused": []}
    nobody = researcher.post("/api/v1/desk/assign", json={"recordings": [first], "people": []})
    assert nobody.status_code == 422
    stranger = kitchen.tools.accounts.add_person("Dill", ["annotator"], actor="")
    researcher.post("/api/v1/desk/assign", json={"recordings": others[1:], "people": [stranger]})

    page = client.get("/desk/review").text
    assert [recording in page for recording in (first, second, third)] == [True] * 3
    assert not any(recording in page for recording in others[1:])
    assert "/errors" not in page
    refused = client.post("/api/v1/desk/assign", json={"recordings": [first], "people": [me]})
    assert refused.status_code in (401, 403)

    def after(recording: str) -> str:
        answer = client.get(f"/desk/review/next?after={recording}", follow_redirects=False)
        return str(answer.headers["location"])

    def submit(recording: str) -> None:
        kitchen.tools.records.note(STEPS.submitted, recording, {}, actor=me)

    assert after(first) == f"/desk/recordings/{second}/steps"
    submit(first)
    body = {"recordings": [first], "people": [stranger]}
    assert researcher.post("/api/v1/desk/assign", json=body).json()["asked"] == 1
    here = round_of(kitchen.tools.records.ops(first), STEPS).people
    assert {person: done.is_submitted for person, done in here.items()} == {me: True, stranger: False}
    assert after(first) == f"/desk/recordings/{second}/steps"
    submit(second)
    assert after(second) == f"/desk/recordings/{third}/steps"
    submit(third)
    with edit_manifest(kitchen.data / "take_1") as manifest:  # the oldest that may be annotated
        manifest["abandoned"] = {"reason": "the pan burnt", "host_ns": 1}
    aborted = researcher.post("/api/v1/desk/assign", json={"recordings": [cooked[1]], "people": [me]}).json()
    assert "it was aborted and shall not be used: the pan burnt" in aborted["refused"][0]["why"]
    assert cooked[1] not in researcher.get("/desk/review?show=all").text
    assert after(third) == "/desk/review"  # what may not be annotated is offered to nobody
    with edit_manifest(kitchen.data / "take_0") as manifest:
        manifest["consent_scopes"] = ["annotate"]
    left = after(third)
    assert left == f"/desk/recordings/{others[0]}/steps"  # nobody was asked for it: it is for everybody
    submit(others[0])
    assert after(others[0]) == "/desk/review"

"""Errors judged by two people alone: what each may see, how they agree, who rules, and what is kept."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from browser import at_the_desk, chromium
from hypothesis import given
from hypothesis import strategies as st
from numbered_recording import write_numbered
from screens import serious

from kitchensync.recipe_app.review.judged_answers import ERRORS, agreement_of_answers, cohens_kappa, settled
from kitchensync.storage.manifest import edit_manifest

pytestmark = pytest.mark.slow

CHOICES = st.sampled_from("xyz")


@given(st.lists(st.tuples(CHOICES, CHOICES), min_size=1, max_size=30))
def test_kappa_is_what_its_definition_says(pairs: list[tuple[str, str]]) -> None:
    first, second = ([pair[side] for pair in pairs] for side in (0, 1))
    every = [(a, b) for a in first for b in second]
    by_chance = sum(a == b for a, b in every) / len(every)
    found = cohens_kappa(pairs)
    if by_chance == 1:
        assert found is None
    else:
        equal = sum(a == b for a, b in pairs) / len(pairs)
        assert found == pytest.approx((equal - by_chance) / (1 - by_chance))


def every(answers: dict[str, str], **other: str) -> dict[str, str]:
    return {question: choices[0] for question, choices in ERRORS.questions.items()} | answers | other


def test_equal_answers_are_settled_and_the_others_are_ruled_on() -> None:
    people = {
        "a": {"e1": every({}), "e2": every({})},
        "b": {"e1": every({}), "e2": every({"verdict": "unsure"})},
    }
    final, disputed = settled(people, {}, ["e1", "e2"], ERRORS)
    assert disputed == [("e2", "verdict")]
    assert final["e1"] == every({})
    final, disputed = settled(people, {"e2": {"verdict": "did_not_happen"}}, ["e1", "e2"], ERRORS)
    assert (final["e2"], disputed) == (every({"verdict": "did_not_happen"}), [])
    agreement = agreement_of_answers(people, ["e1", "e2"], ERRORS)
    assert (agreement["verdict"], agreement["intent"]) == (
        {"share": 0.5, "kappa": 0.0},
        {"share": 1.0, "kappa": None},
    )


def one_answer(kitchen: Any, recording: str, item: str, question: str, answer: str) -> dict[str, Any]:
    op_id = kitchen.operation(recording, "note", {})["op_id"]
    return {"op_id": op_id, "answer": {"item": item, "question": question, "answer": answer}}


@pytest.fixture
def wrong(kitchen: Any) -> tuple[str, list[str], Path]:
    """A recording in which two errors were made, and its folder."""
    recording = str(kitchen.choose()["recording"])
    write_numbered(kitchen.data, "take1")
    with edit_manifest(kitchen.data / "take1") as manifest:
        manifest["consent_scopes"] = ["annotate"]
    kitchen.tools.records.give_folder(recording, "take1", actor="")
    errors = []
    for number, node in enumerate((1, 2)):
        errors.append(f"0190a000-0000-7000-8000-00000000000{number}")
        fields = {"node": node, "categories": [1 + number], "actual": "too much", "expected": "300 ml"}
        kitchen.post(kitchen.operation(recording, "add_error", {"error_id": errors[-1], "fields": fields}))
    return recording, errors, kitchen.data / "take1"


@pytest.mark.slow
def test_two_researchers_judge_and_a_third_rules(kitchen: Any, wrong: tuple[str, list[str], Path]) -> None:
    recording, errors, folder = wrong
    address = f"/api/v1/desk/recordings/{recording}/errors"
    ann, ben, third = (kitchen.desk("researcher") for _ in range(3))
    me = {one: one.get("/api/v1/me").json()["person"]["id"] for one in (ann, ben)}
    annotator = kitchen.desk("annotator")
    assert annotator.get(address).status_code == 401
    assert (
        third.post(
            f"{address}/assign", json={"people": [annotator.get("/api/v1/me").json()["person"]["id"]]}
        ).status_code
        == 404
    )
    assert third.post(f"{address}/assign", json={"people": list(me.values())}).status_code == 200
    assert [error["step"] != "" for error in ann.get(address).json()["errors"]] == [True, True]
    refused = third.post(address, json=one_answer(kitchen, recording, errors[0], "verdict", "happened"))
    assert refused.status_code == 403
    for wanted in (("verdict", "perhaps"), ("colour", "red")):
        assert ann.post(address, json=one_answer(kitchen, recording, errors[0], *wanted)).status_code == 422
    planted = {ann: every({}), ben: every({"intent": "by_accident"})}
    for one, other in ((ann, ben), (ben, ann)):
        assert one.post(f"{address}/submit", json={}).status_code == 409
        for item in errors:
            for question, answer in planted[one].items():
                assert (
                    one.post(address, json=one_answer(kitchen, recording, item, question, answer)).status_code
                    == 200
                )
        seen = other.get(address).json()
        assert "answers" not in seen
        assert "agreement" not in seen
        assert third.post(f"{address}/accept", json={}).status_code == 409
        assert one.post(f"{address}/submit", json={}).json() == {"errors": 2}
    said = third.get(address).json()
    assert {question: found["share"] for question, found in said["agreement"].items()} == {
        question: float(question != "intent") for question in ERRORS.questions
    }
    assert Counter(one["question"] for one in said["disputed"]) == {"intent": 2}
    assert third.post(f"{address}/accept", json={}).status_code == 409
    with chromium() as browser:
        desk = at_the_desk(browser, kitchen.url, third.headers["x-kitchensync-login"])
        desk.go(f"/recordings/{recording}/errors")
        page = desk.page
        page.get_by_text("2 answers to rule on").wait_for()
        for number in range(2):
            page.locator("fieldset.disputed").first.get_by_label("by accident").click()
            page.get_by_text(f"{1 - number} answer").first.wait_for()  # and the page is drawn anew
        assert serious(page) == []
        desk.tap("Keep with the recording")
        page.get_by_text("Kept in annotations/").wait_for()
        assert desk.problems == []
    kitchen.tools.films.close()
    late = {"error_id": errors[0][:-1] + "9", "fields": {"node": 3, "categories": [1]}}
    kitchen.post(kitchen.operation(recording, "add_error", late))
    said = third.get(address).json()
    assert {one["item"] for one in said["disputed"]} == {late["error_id"]}, "nobody was asked about it"
    assert {found["share"] for found in said["agreement"].values()} == {0.0, 1.0}
    assert third.post(f"{address}/accept", json={}).status_code == 409
    for question, answer in every({}).items():
        ruled = one_answer(kitchen, recording, late["error_id"], question, answer)
        assert ann.post(f"{address}/rule", json=ruled).status_code == 409, "a judge does not rule"
        assert third.post(f"{address}/rule", json=ruled).status_code == 200
    assert third.post(f"{address}/accept", json={}).json() == {"version": 2, "errors": 3}
    kept = json.loads((folder / "annotations" / "errors-1.json").read_text())
    assert [error["judged"] for error in kept["errors"]] == [every({"intent": "by_accident"})] * 2
    assert [error["error_id"] for error in kept["errors"]] == errors
    assert len(kept["answers"]) == 2


def test_who_marks_the_steps_sees_no_errors_before(kitchen: Any, wrong: tuple[str, list[str], Path]) -> None:
    recording, _, _ = wrong
    one, other = kitchen.desk("researcher"), kitchen.desk("researcher")
    me = one.get("/api/v1/me").json()["person"]["id"]
    assert other.post(f"/api/v1/desk/recordings/{recording}/round", json={"people": [me]}).status_code == 200
    address = f"/api/v1/desk/recordings/{recording}/errors"
    answer = one.get(address)
    assert (answer.status_code, "too much" in answer.text) == (409, False)
    assert other.get(address).status_code == 200

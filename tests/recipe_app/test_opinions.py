"""Opinions of people: figures by hand, blindness over HTTP, a person at the keyboard, and what is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from browser import at_the_desk, chromium
from click.testing import CliRunner
from filmed_cooking import cook_on_film
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata
from screens import findings

from kitchensync.cli import main
from kitchensync.dataset.examples.opinion_rows import pooled
from kitchensync.recipe_app.review.opinions import OPINIONS, figures, spearman
from kitchensync.recipe_app.store.app_records import new_id

SCORES = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=2, max_size=12)


def test_decisions_are_right_as_often_as_by_hand() -> None:
    truth = ["yes", "yes", "no", "no"]
    items = [{"item": str(k), "hidden": {"success": one}} for k, one in enumerate(truth)]
    said = {"a": "yynn", "b": "ynnn", "c": "nnny"}  # right: 4, 3 and 1 of 4
    people = {
        person: {
            str(k): {"success": {"y": "yes", "n": "no"}[letter], "confidence": str(1 + k)}
            for k, letter in enumerate(letters)
        }
        for person, letters in said.items()
    }
    found = figures(people, items, OPINIONS["decisions"])
    assert found["success"]["mean_accuracy"] == pytest.approx(8 / 12)
    assert found["success"]["majority_accuracy"] == pytest.approx(3 / 4)  # yes, no, no, no
    assert found["success"]["share"] == pytest.approx((3 / 4 + 1 / 4 + 2 / 4) / 3)
    # a and b: (3/4 - 1/2) / (1/2); a and c: (1/4 - 1/2) / (1/2); b and c: (1/2 - 5/8) / (3/8)
    assert found["success"]["kappa"] == pytest.approx((1 / 2 - 1 / 2 - 1 / 3) / 3)
    assert found["confidence"]["spearman"] == pytest.approx(1)
    even = {person: people[person] for person in ("a", "b")}
    assert figures(even, items, OPINIONS["decisions"])["success"]["majority_accuracy"] == 3 / 4


def test_ratings_go_together_as_by_hand() -> None:
    items = [
        {"item": str(k), "hidden": {"relevance": of, "informativeness": None}}
        for k, of in enumerate((0.1, 0.5, None, 0.9))
    ]
    rows = {"a": "1234", "b": "1243", "c": "4321"}
    people = {
        person: {str(k): {"relevance": letter, "informativeness": "3"} for k, letter in enumerate(letters)}
        for person, letters in rows.items()
    }
    found = figures(people, items, OPINIONS["ratings"])
    # 1 - 6 sum d^2 / (n (n^2 - 1)): a, b: 1 - 12 / 60; a, c: -1; b, c: 1 - 6 * 18 / 60
    assert found["relevance"]["spearman"] == pytest.approx((0.8 - 1 - 0.8) / 3)
    # means 2, 7/3 and 8/3 where it was measured: ranks 1, 2, 3
    assert found["relevance"]["spearman_measured"] == pytest.approx(1)
    assert found["informativeness"]["spearman"] is None
    assert found["informativeness"]["spearman_measured"] is None


@given(SCORES)
def test_ranks_are_shared_by_equal_values(pairs: list[tuple[int, int]]) -> None:
    first, second = ([pair[side] for pair in pairs] for side in (0, 1))
    a, b = (rankdata(values) - (len(pairs) + 1) / 2 for values in (first, second))
    found, spread = spearman(first, second), float((a @ a) * (b @ b)) ** 0.5
    assert found == (None if spread == 0 else pytest.approx(float(a @ b) / spread))


def answered(kitchen: Any, recording: str, client: Any, kind: str, item: str, **said: str) -> list[int]:
    codes = []
    for question, answer in said.items():
        body = {
            "op_id": kitchen.operation(recording, "note", {})["op_id"],
            "answer": {"item": item, "question": question, "answer": answer},
        }
        codes.append(
            client.post(f"/api/v1/desk/recordings/{recording}/opinions/{kind}", json=body).status_code
        )
    return codes


@pytest.mark.slow
@pytest.mark.timeout(150)
def test_three_decide_and_five_rate_each_alone(kitchen: Any) -> None:
    recording, folder, _ = cook_on_film(kitchen)
    address = f"/api/v1/desk/recordings/{recording}/opinions"
    researchers = [kitchen.desk("researcher") for _ in range(6)]
    people = [one.get("/api/v1/me").json()["person"]["id"] for one in researchers]
    *five, outside = researchers
    three = five[:3]
    assert kitchen.desk("annotator").get(f"{address}/decisions").status_code == 401
    assert outside.get(f"{address}/thoughts").status_code == 422
    assert outside.post(f"{address}/decisions/assign", json={"people": people[:2]}).status_code == 422
    for kind in ("opinions/decisions", "opinions/ratings", "errors", "questions", "evidence"):
        unknown = f"/api/v1/desk/recordings/{new_id(1)}/{kind}"
        answers = [
            outside.get(unknown),
            *(outside.post(unknown + end, json={}) for end in ("/submit", "/assign")),
        ]
        for refused in answers:
            assert (refused.status_code, "no recording" in refused.json()["error"]) == (404, True), kind
    assert outside.post(f"{address}/decisions/assign", json={"people": people[:3]}).status_code == 200
    asked = outside.post(f"{address}/decisions/ask", json={}).json()["items"]
    assert asked == outside.post(f"{address}/decisions/ask", json={}).json()["items"] > 1
    items = [item["item"] for item in three[0].get(f"{address}/decisions").json()["items"]]
    assert answered(kitchen, recording, outside, "decisions", items[0], success="yes") == [403]
    assert (
        answered(kitchen, recording, three[0], "decisions", items[0], success="5", relevance="1") == [422] * 2
    )
    with chromium() as browser:
        for client, said in zip(three, (("yes", "4"), ("no", "4"), ("yes", "2")), strict=True):
            assert client.post(f"{address}/decisions/submit", json={}).status_code == 409
            assert outside.post(f"{address}/decisions/accept", json={}).status_code == 409
            seen = outside.get(f"{address}/decisions")
            assert seen.json().keys().isdisjoint({"figures"})
            assert "hidden" not in seen.text
            desk = at_the_desk(browser, kitchen.url, client.headers["x-kitchensync-login"])
            decide_by_keyboard(desk, recording, asked, said)
        page = desk.page
        page.get_by_text("Right, majority").wait_for()
        page.locator("video").first.wait_for(timeout=60_000)
        assert findings(page) == []
        desk.tap("Keep with the recording")
        page.get_by_text("Kept in annotations/").wait_for()
        assert desk.problems == []
    kitchen.tools.films.close()
    kept = json.loads((folder / "annotations" / "decisions-1.json").read_text())
    assert [item["hidden"]["success"] for item in kept["items"]] == ["yes"] * asked
    assert kept["figures"]["success"]["mean_accuracy"] == pytest.approx(2 / 3)
    assert kept["figures"]["success"]["majority_accuracy"] == 1
    assert kept["answers"][1][items[0]] == {"success": "no", "confidence": "4"}
    rate(kitchen, recording, five, people[:5], items)
    kept = json.loads((folder / "annotations" / "ratings-1.json").read_text())
    assert kept["figures"]["relevance"]["spearman"] == pytest.approx(1)
    assert kept["figures"]["relevance"]["spearman_measured"] == pytest.approx(-1)
    assert len(kept["answers"]) == 5
    exported(folder, items)


def decide_by_keyboard(desk: Any, recording: str, asked: int, said: tuple[str, str]) -> None:
    """Say the same of each step, and submit; the mouse is not touched."""
    page = desk.page
    desk.go(f"/recordings/{recording}/opinions/decisions")
    for number in range(asked):
        page.get_by_text(f"{number + 1} / {asked} ·").wait_for()
        for name in said:
            page.get_by_label(name, exact=True).focus()
            page.keyboard.press("Space")
        left = 2 * (asked - 1 - number)
        page.get_by_text(f"{left} question{'' if left == 1 else 's'} left").wait_for()
        page.get_by_role("button", name="Next").focus()
        page.keyboard.press("Enter")
    submit(desk)


def submit(desk: Any) -> None:
    page = desk.page
    assert findings(page) == []
    page.get_by_role("button", name="Submit").focus()
    page.keyboard.press("Enter")
    page.get_by_text("Submitted.").wait_for()
    assert desk.problems == []


def exported(folder: Path, items: list[str]) -> None:
    """What was kept comes out as rows that go with those of `export coherence`, without who said what."""
    root = folder.parent.parent
    said = {}
    for form in ("opinions", "coherence"):
        words = ["export", form, str(folder), "--out", str(root / f"{form}.json"), "--json"]
        done = CliRunner().invoke(main, words)
        assert done.exit_code == 0, done.output
        said[form] = json.loads(done.stdout)
    rows = json.loads((root / "opinions.json").read_text())
    examples = {one["example_id"]: one for one in json.loads((root / "coherence.json").read_text())}
    decided, rated = ([one for one in rows if one["kind"] == kind] for kind in ("decision", "rating"))
    assert [one["example_id"] for one in decided] == list(examples)
    for row in decided:
        assert {key: row[key] for key in ("from", "to", "mistake", "procedure_description")} == {
            key: examples[row["example_id"]][key]
            for key in ("from", "to", "mistake", "procedure_description")
        }
        assert sorted(zip(row["success"], row["confidence"], strict=True)) == [
            ("no", 4),
            ("yes", 2),
            ("yes", 4),
        ]
        assert (row["majority"], row["share"]) == ("yes", pytest.approx(1 / 3))
    assert [one["relevance"] for one in rated] == [[k] * 5 for k in (1, 2, 3)]
    assert [one["measured"]["relevance"] for one in rated] == [0.9, 0.5, 0.1]
    assert [one["mean_relevance"] for one in rated] == [1, 2, 3]
    assert {one["example_id"] for one in rated} == {decided[0]["example_id"]}
    agreement = said["opinions"]["agreement"]
    assert agreement["decisions"]["success"]["mean_accuracy"] == pytest.approx(2 / 3)
    assert agreement["ratings"]["relevance"]["spearman_measured"] == pytest.approx(-1)
    assert (said["opinions"]["decisions"], said["opinions"]["ratings"]) == (len(items), 3)


def test_figures_over_recordings_count_each_item_once() -> None:
    few = {"success": {"mean_accuracy": 1.0, "kappa": 0.5, "share": None}}
    many = {"success": {"mean_accuracy": 0.5, "kappa": None, "share": 0.25}, "confidence": {"spearman": 0.1}}
    found = pooled([(2, few), (6, many)])
    assert found["success"]["mean_accuracy"] == pytest.approx((2 * 1.0 + 6 * 0.5) / 8)
    assert (found["success"]["kappa"], found["success"]["share"]) == (0.5, 0.25)
    assert found["confidence"] == {"spearman": pytest.approx(0.1)}


def rate(kitchen: Any, recording: str, five: list[Any], people: list[str], items: list[str]) -> None:
    """Five rate three questions alike; what was measured says the opposite."""
    address = f"/api/v1/desk/recordings/{recording}/opinions/ratings"
    assert five[0].post(f"{address}/assign", json={"people": people[:4]}).status_code == 422
    assert five[0].post(f"{address}/assign", json={"people": people}).status_code == 200
    question = {"example_id": items[0], "question": "Is the cup full?", "answer": "Yes."}
    strange = {"questions": [question | {"example_id": "9_9_9"}]}
    assert five[0].post(f"{address}/ask", json=strange).status_code == 422
    three = [question | {"relevance": at, "informativeness": 0.5} for at in (0.9, 0.5, 0.1)]
    assert five[0].post(f"{address}/ask", json={"questions": three}).json() == {"items": 3}
    with chromium() as browser:
        rate_by_keyboard(at_the_desk(browser, kitchen.url, five[4].headers["x-kitchensync-login"]), recording)
    for client in five[:4]:
        said = client.get(address)
        assert ("0.9" in said.text, "hidden" in said.text) == (False, False)
        for number, item in enumerate(said.json()["items"]):
            codes = answered(
                kitchen,
                recording,
                client,
                "ratings",
                item["item"],
                relevance=str(1 + number),
                informativeness="3",
            )
            assert codes == [200, 200]
        assert client.post(f"{address}/submit", json={}).status_code == 200
    assert five[0].post(f"{address}/accept", json={}).status_code == 200


def rate_by_keyboard(desk: Any, recording: str) -> None:
    """Rate three questions, each one higher, and submit; the mouse is not touched."""
    page = desk.page
    desk.go(f"/recordings/{recording}/opinions/ratings")
    for number in range(3):
        page.get_by_text(f"{number + 1} / 3 ·").wait_for()
        for name, value in (("relevance", 1 + number), ("informativeness", 3)):
            page.locator(f"input[name={name}][value='{value}']").focus()
            page.keyboard.press("Space")
        left = 2 * (2 - number)
        page.get_by_text(f"{left} questions left").wait_for()
        page.get_by_role("button", name="Next").focus()
        page.keyboard.press("Enter")
    submit(desk)

"""Questions verified: every row of the decision table, agreement by hand, two judges and a third on their pages."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from browser import at_the_desk, chromium
from click.testing import CliRunner
from filmed_cooking import cook_on_film
from screens import serious

from kitchensync.cli import main
from recipe_app.review.question_rounds import QuestionVerdict, agreement_of_judges, candidates, decide

ITEM = {"item": "q", "type": "next", "answers": ["a", "b"], "question": "?", "example": {}}


def verdict(valid: bool, *accepted: bool, added: list[str] | None = None) -> QuestionVerdict:
    return QuestionVerdict(item="q", valid=valid, accepted=list(accepted), added=added or [])


def by_the_table(judged: list[QuestionVerdict], ruling: QuestionVerdict | None) -> tuple[str, set[str]]:
    """Say the same by another way: count votes for each answer."""
    yes = sum(one.valid for one in judged)
    if yes == 0:
        return "rejected", set()
    extra = [text for one in judged if one.valid for text in one.added]
    votes = {text: [one.accepted[k] for one in judged if one.valid] for k, text in enumerate(ITEM["answers"])}
    if yes == 2 and not extra and all(sum(vote) in (0, 2) for vote in votes.values()):
        if ruling is None:
            return "accepted", {text for text, vote in votes.items() if sum(vote) == 2}
    elif ruling is None:
        return "to_rule", set()
    if yes == 1 and not ruling.valid:
        return "rejected", set()
    texts = list(dict.fromkeys([*ITEM["answers"], *extra]))
    third = dict(zip(texts, ruling.accepted, strict=True))
    kept = set()
    for text in texts:
        of = [*(votes[text] if yes == 2 and text in votes else []), third[text]]
        if sum(of) * 2 > len(of):
            kept.add(text)
    return "accepted", kept | set(ruling.added)


def test_every_row_of_the_decision_table() -> None:
    flags = (False, True)
    ways = [verdict(False)] + [
        verdict(True, *accepted, added=added)
        for accepted in product(flags, repeat=2)
        for added in ([], ["c"])
    ]
    rows = 0
    for judged in product(ways, repeat=2):
        count = len(candidates(ITEM, judged))
        rulings = [None, verdict(False)] + [
            verdict(True, *of, added=["d"]) for of in product(flags, repeat=count)
        ]
        for ruling in rulings:
            if ruling is not None and not ruling.valid:
                ruling = QuestionVerdict(item="q", valid=False, accepted=[False] * count)
            found = decide(ITEM, judged, ruling)
            assert (found.state, set(found.answers)) == by_the_table(list(judged), ruling)
            assert len(found.answers) == len(found.tags)
            rows += 1
    assert rows > 400


def test_agreement_is_what_was_planted() -> None:
    items = [ITEM | {"item": str(k), "type": kind} for k, kind in enumerate(["next", "next", "missing"])]
    first = {"0": verdict(True, True, False), "1": verdict(True, True, True), "2": verdict(False)}
    second = {"0": verdict(True, True, True), "1": verdict(False), "2": verdict(False)}
    assert agreement_of_judges(items, [first, second]) == {
        "missing": {"questions": 1.0, "answers": None, "approved": 0.0},
        "next": {"questions": 0.5, "answers": 0.5, "approved": 0.75},
    }


def judged_by(kitchen: Any, recording: str, client: Any, item: dict[str, Any], **said: Any) -> Any:
    op_id = kitchen.operation(recording, "note", {})["op_id"]
    body = {"op_id": op_id, "verdict": {"item": item["item"], **said}}
    return client.post(f"/api/v1/desk/recordings/{recording}/questions", json=body)


@pytest.mark.slow
@pytest.mark.timeout(150)
def test_a_film_is_asked_about_judged_ruled_on_and_exported(kitchen: Any, tmp_path: Path) -> None:
    recording, folder, _ = cook_on_film(kitchen)
    address = f"/api/v1/desk/recordings/{recording}/questions"
    ann, ben, third = (kitchen.desk("researcher") for _ in range(3))
    people = [one.get("/api/v1/me").json()["person"]["id"] for one in (ann, ben)]
    assert third.post(f"{address}/assign", json={"people": people}).status_code == 200
    asked = third.post(f"{address}/ask", json={}).json()["questions"]
    assert asked == third.post(f"{address}/ask", json={}).json()["questions"] > 2
    items = ann.get(address).json()["items"]
    assert len({item["item"] for item in items}) == asked
    assert judged_by(kitchen, recording, third, items[0], valid=False).status_code == 403
    assert judged_by(kitchen, recording, ann, items[0], valid=True, accepted=[]).status_code == 422
    for client, other in ((ann, ben), (ben, ann)):
        for number, item in enumerate(items):
            accepted = [True] * len(item["answers"])
            if number == 1 and client is ben:
                accepted[0] = False
            valid = number != 0
            said = {"valid": valid, "accepted": accepted if valid else []}
            assert judged_by(kitchen, recording, client, item, **said).status_code == 200
        assert "standing" not in other.get(address).json()
        assert third.post(f"{address}/accept", json={}).status_code == 409
        assert client.post(f"{address}/submit", json={}).status_code == 200
    said = third.get(address).json()
    assert (said["to_rule"], said["standing"][items[1]["item"]]["state"]) == (1, "to_rule")
    own = {"op_id": kitchen.operation(recording, "note", {})["op_id"]}
    own["verdict"] = {"item": items[1]["item"], "valid": False}
    assert ann.post(f"{address}/rule", json=own).status_code == 409
    with chromium() as browser:
        desk = at_the_desk(browser, kitchen.url, third.headers["x-kitchensync-login"])
        desk.go(f"/recordings/{recording}/questions")
        page = desk.page
        page.get_by_text("1 answer to rule on").wait_for()
        page.locator("video").first.wait_for(timeout=60_000)
        page.get_by_role("button", name="Next").click()
        page.get_by_label("yes", exact=True).check()
        page.get_by_label(items[1]["answers"][0], exact=True).check()
        page.get_by_label("Answers that are missing").fill("wash the cup")
        page.get_by_label("Answers that are missing").press("Tab")
        assert serious(page) == []
        desk.tap("Save, to the next one")
        page.get_by_text("0 answers to rule on").wait_for()
        desk.tap("Keep with the recording")
        page.get_by_text("Kept in annotations/").wait_for()
        assert desk.problems == []
    kitchen.tools.films.close()
    kept = json.loads((folder / "annotations" / "questions-1.json").read_text())["questions"]
    assert [row["valid"] for row in kept] == [number != 0 for number in range(asked)]
    assert kept[1]["answers"][0] == items[1]["answers"][0]
    assert (kept[1]["answers"][-1], kept[1]["answer_tags"][-1]) == ("wash the cup", "adjudicator")
    out = tmp_path / "verified.json"
    done = CliRunner().invoke(
        main, ["export", "promqa", str(folder), "--out", str(out), "--verified", "--json"]
    )
    assert done.exit_code == 0, done.output
    rows = json.loads(out.read_text())
    behind = [row["question_id"].removeprefix(row["recording_id"]) for row in rows]
    assert behind == [row["question_id"].removeprefix(row["recording_id"]) for row in kept if row["valid"]]
    assert rows[0]["judges"][1]["question"] is True
    assert rows[0]["answers"][-1] == "wash the cup"

"""Questions verified: every row of the decision table, agreement by hand, two judges and a third on their pages."""

from __future__ import annotations

import json
from contextlib import nullcontext
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from browser import at_the_desk, chromium
from click.testing import CliRunner
from filmed_cooking import cook_on_film
from model_server import ModelServer, message
from screens import findings

from kitchensync.cli import main
from kitchensync.dataset.promqa.assembly_records import assembly_record, is_of_assembly
from kitchensync.dataset.promqa.judge_agreement import agreement_of_judges
from kitchensync.operations.errors import BadOperation
from kitchensync.recipe_app.review.question_rounds import (
    ASKED,
    QuestionVerdict,
    candidates,
    check_verdict,
    decide,
)
from kitchensync.recipe_app.store.app_records import new_id
from kitchensync.storage.manifest import edit_manifest

PUBLISHED_OF_ASSEMBLY = {
    *("toy_id", "sequence_id", "video", "question", "answers", "question_type", "multimodal", "source")
}
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
    third = dict(zip((text for text, _ in candidates(ITEM, judged)), ruling.accepted, strict=True))
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
    rejected, wrong = {"question": False, "answers": []}, {"question": True, "answers": [True, False]}
    right = {"question": True, "answers": [True, True]}
    judged = [("next", [wrong, right]), ("next", [right, rejected]), ("missing", [rejected, rejected])]
    assert agreement_of_judges(judged) == {
        "missing": {"questions": 1.0, "answers": None, "approved": 0.0},
        "next": {"questions": 0.5, "answers": 0.5, "approved": 0.75},
    }


def test_records_of_the_assembly_form_are_as_by_hand() -> None:
    yes, no, rejects = (
        {"question": valid, "multimodal": multimodal}
        for valid, multimodal in ((True, True), (True, False), (False, True))
    )
    row: dict[str, Any] = {
        "activity_name": "Tea",
        "recording_id": "1_1",
        "type": "next",
        "end_time": "01:02:03",
    }
    row |= {"question": "?", "answers": ["a"], "answer_tags": ["annotator"], "adjudication": None}
    row |= {"current_step": {"step_id": 4}, "verification": {"judges": [yes, yes]}}

    def record(*judges: dict[str, Any], **other: Any) -> dict[str, Any]:
        return assembly_record(row | {"verification": {"judges": judges}} | other, 2.5)

    assert record(yes, yes) == {
        "toy_id": "Tea",
        "sequence_id": "1_1",
        "video": {"start": 2.5, "end": 3723},
        "question": "?",
        "answers": ["a"],
        "question_type": "next",
        "multimodal": True,
        "source": "human",
    }
    assert record(yes, yes, answer_tags=["annotator", "machine"])["source"] == "machine"
    assert [record(yes, one)["multimodal"] for one in (no, rejects)] == [False, True]
    assert [record(yes, no, adjudication=one)["multimodal"] for one in (yes, no)] == [True, False]
    others = (
        {"answers": []},
        {"current_step": {"step_id": -1}},
        {"verification": {"judges": [{"question": True}]}},
    )
    assert [is_of_assembly(row | one) for one in ({}, *others)] == [True, False, False, False]


@pytest.mark.parametrize(
    ("valid", "accepted", "fits"),
    [(True, 3, True), (True, 2, False), (False, 0, True), (False, 3, True), (False, 1, False)],
)
def test_a_verdict_is_of_all_answers(valid: bool, accepted: int, fits: bool) -> None:
    said = QuestionVerdict(item="q", valid=valid, accepted=[False] * accepted)
    with nullcontext() if fits else pytest.raises(BadOperation):
        check_verdict(said, ITEM, 3)


def test_an_answer_that_is_offered_and_added_stands_once() -> None:
    judged = [verdict(True, True, False), verdict(True, True, True)]
    ruling = verdict(True, *(text == "a" for text, _ in candidates(ITEM, judged)), added=["a", "b", "c", "c"])
    found = decide(ITEM, judged, ruling)
    assert dict(zip(found.answers, found.tags, strict=True)) == {
        "a": "machine",
        "b": "adjudicator",
        "c": "adjudicator",
    }
    assert len(found.answers) == 3


def judged_by(kitchen: Any, recording: str, client: Any, item: dict[str, Any], **said: Any) -> Any:
    op_id = kitchen.operation(recording, "note", {})["op_id"]
    body = {"op_id": op_id, "verdict": {"item": item["item"], **said}}
    return client.post(f"/api/v1/desk/recordings/{recording}/questions", json=body)


def test_each_example_gets_two_chances_of_a_human_answer_and_nothing_tells_whose_an_answer_is() -> None:
    judged = [verdict(True, True, False, added=["mine"]), verdict(True, True, True, added=["yours"])]
    offered = candidates(ITEM, judged)
    assert {*offered} == {("a", "machine"), ("b", "machine"), ("mine", "annotator"), ("yours", "annotator")}
    places = set()
    for number in range(30):
        told = [tag for _, tag in candidates(ITEM | {"item": str(number)}, judged)]
        places |= {place for place, tag in enumerate(told) if tag == "annotator"}
    assert places == {0, 1, 2, 3}
    assert offered == candidates(ITEM, judged[::-1]), "whoever answered first"
    for chosen in (["mine"], ["yours"], ["mine", "yours"], []):
        ruling = verdict(True, *(text in chosen for text, _ in offered))
        found = decide(ITEM, judged, ruling)
        assert sorted(found.answers) == sorted(["a", *chosen]), "each human answer is ruled on by itself"


def written_by_a_model(folder: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Have a model on loopback write questions about a recording; return the rows."""

    def say(body: dict[str, Any]) -> tuple[int, bytes]:
        about = body["messages"][0]["content"].splitlines()[-3]
        answers = [f"so says {len(about)}", "ask again"]
        three = [{"question": f"Written {n}?", "answers": answers} for n in range(3)]
        return 200, message(json.dumps({"candidates": three}))

    with edit_manifest(folder) as manifest:
        manifest["consent_scopes"] += ["third_party_processing"]
    server = ModelServer(say, "questions")
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    try:
        done = CliRunner().invoke(main, ["export", "promqa", str(folder), "--model", "--out", str(out)])
    finally:
        server.close()
    assert done.exit_code == 0, done.output
    rows = json.loads(out.read_text())
    assert all(row["verification"]["question"].startswith("Written") for row in rows)
    return list(rows)


def ask_in_form(kitchen: Any, recording: str, form: str) -> None:
    """Ask the same in another form: one recording shows both pages."""
    (asked, *_) = (op["body"] for op in kitchen.tools.records.ops(recording) if op["kind"] == ASKED)
    kitchen.tools.records.note(ASKED, recording, asked | {"form": form}, actor="")


def judge_by_keyboard(desk: Any, recording: str, items: list[dict[str, Any]]) -> None:
    """Reject the first question, accept the others with all their answers, and submit; the mouse is not touched."""
    page = desk.page
    desk.go(f"/recordings/{recording}/questions")
    for number, item in enumerate(items):
        page.get_by_text(f"{number + 1} / {len(items)} ·").wait_for()
        assert page.locator("#questions").get_by_role("checkbox").count() == 0, "the question first"
        page.get_by_label("no" if number == 0 else "yes", exact=True).focus()
        page.keyboard.press("Space")
        for text in item["answers"] if number else ():
            page.get_by_label(text, exact=True).focus()
            page.keyboard.press("Space")
        assert page.locator("#questions").get_by_role("checkbox").count() == (
            len(item["answers"]) if number else 0
        )
        page.get_by_role("button", name="Save, to the next one").focus()
        page.keyboard.press("Enter")
    page.get_by_text("0 questions left").wait_for()
    assert findings(page) == []
    page.get_by_role("button", name="Submit").focus()
    page.keyboard.press("Enter")
    page.get_by_text("Submitted.").wait_for()
    assert desk.problems == []


def judge_by_three_criteria(desk: Any, recording: str, items: list[dict[str, Any]]) -> None:
    """Reject the first question and the first answer of the second, none is procedural; by keyboard alone."""
    page = desk.page
    desk.go(f"/recordings/{recording}/questions")
    for number, item in enumerate(items):
        page.get_by_text(f"{number + 1} / {len(items)} ·").wait_for()
        answers = item["answers"][number == 1 :] if number else []
        for criterion in ("Multimodal:", *(["Valid:"] if number else [])):
            page.get_by_label(criterion).press("Space")
        for text in answers:
            page.get_by_label(text, exact=True).press("Space")
        page.get_by_role("button", name="Save, to the next one").press("Enter")
    page.get_by_text("0 questions left").wait_for()
    page.get_by_role("button", name="Submit").press("Enter")
    page.get_by_text("1 answer to rule on").wait_for()
    assert desk.problems == []


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_from_film_to_a_model_s_question_to_verified_to_export(
    kitchen: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording, folder, _ = cook_on_film(kitchen)
    wrong = kitchen.tools.records.state(recording)["recording"]["order"][1]
    fields = {"node": wrong, "categories": [3], "description": "too long"}
    kitchen.post(kitchen.operation(recording, "error", {"error_id": new_id(1), "fields": fields}))
    kitchen.tools.intake.file()
    written = written_by_a_model(folder, tmp_path / "written.json", monkeypatch)
    about = {key: written[-1][key] for key in ("recording_id", "question_id")} | {"question": "Is it done?"}
    plain = [
        about | {"answer": text, "source": who} for text, who in (("Yes.", "A"), ("No.", "B"), ("Yes.", "C"))
    ]
    (tmp_path / "given.json").write_text(json.dumps([*written, *plain]))
    address = f"/api/v1/desk/recordings/{recording}/questions"
    ann, ben, third = (kitchen.desk("researcher") for _ in range(3))
    people = [one.get("/api/v1/me").json()["person"]["id"] for one in (ann, ben, third)]
    for some in (people[:1], people):  # two chances of a human answer, no more and no less
        assert third.post(f"{address}/assign", json={"people": some}).status_code == 422
    assert third.post(f"{address}/assign", json={"people": people[:2]}).status_code == 200
    strange = {"question": "?", "answers": ["a"], "question_id": "q", "recording_id": "take1"}
    assert third.post(f"{address}/ask", json={"questions": [strange]}).status_code == 422
    nothing = third.post(f"{address}/ask", json={"questions": []})
    assert (nothing.status_code, "no question" in nothing.text) == (422, True), (
        "a file without any asks nothing"
    )
    with chromium() as browser:
        desk = at_the_desk(browser, kitchen.url, third.headers["x-kitchensync-login"])
        desk.go(f"/recordings/{recording}/questions")
        desk.page.get_by_label("Questions with answers").set_input_files(tmp_path / "given.json")
        assert findings(desk.page) == []
        desk.page.get_by_label("as valid, multimodal and procedural").check()
        desk.tap("Ask what can be asked")
        desk.page.get_by_text("Asked.").wait_for()
        assert desk.problems == []
    asked = len(written) + 1
    assert third.post(f"{address}/ask", json={}).json()["questions"] == asked > 2
    assert not any(word in ann.get(address).text for word in ("generation", "sources")), (
        "who wrote it is not told"
    )
    items = ann.get(address).json()["items"]
    assert len({item["item"] for item in items}) == asked
    (plainly,) = (item for item in items[-2:] if item["question"] == "Is it done?")
    assert {*plainly["answers"]} == {"Yes.", "No."}
    assert judged_by(kitchen, recording, third, items[0], valid=False).status_code == 403
    assert judged_by(kitchen, recording, ann, items[0], valid=True, accepted=[]).status_code == 422
    assert ann.get(address).json()["form"] == "assembly"
    ask_in_form(kitchen, recording, "cooking")
    with chromium() as browser:
        judge_by_keyboard(
            at_the_desk(browser, kitchen.url, ann.headers["x-kitchensync-login"]), recording, items
        )
    assert "standing" not in ben.get(address).json()
    ask_in_form(kitchen, recording, "assembly")
    assert third.post(f"{address}/accept", json={}).status_code == 409
    assert "standing" not in ann.get(address).json()
    with chromium() as browser:
        judge_by_three_criteria(
            at_the_desk(browser, kitchen.url, ben.headers["x-kitchensync-login"]), recording, items
        )
    said = third.get(address).json()
    assert (said["to_rule"], said["standing"][items[1]["item"]]["state"]) == (1, "to_rule")
    with chromium() as browser:
        desk = at_the_desk(browser, kitchen.url, third.headers["x-kitchensync-login"])
        desk.go(f"/recordings/{recording}/questions")
        page = desk.page
        page.get_by_text("1 answer to rule on").wait_for()
        page.locator("video").first.wait_for(timeout=60_000)
        page.get_by_role("button", name="Next", exact=True).press("Enter")
        shown = {kind: page.locator(f".drawing .node.{kind}").count() for kind in ("done", "next", "missing")}
        assert shown == {kind: len(nodes) for kind, nodes in items[1]["nodes"].items()}
        assert shown["done"] + shown["next"] > 0
        later = next(number for number, item in enumerate(items) if item["errors"])
        assert items[later]["errors"] == {str(wrong): [3]}
        for _ in range(later - 1):
            page.get_by_role("button", name="Next", exact=True).press("Enter")
        page.get_by_text(f"{later + 1} / {asked}").wait_for()
        marked = page.locator(".drawing .node", has=page.locator(".mark"))
        assert "Timing" in (marked.get_attribute("aria-label") or "")
        assert marked.get_attribute("data-node") == str(wrong)
        for _ in range(later - 1):
            page.get_by_role("button", name="Back", exact=True).press("Enter")
        assert page.get_by_label("Procedural").count() == page.get_by_label("Multimodal").count() == 1
        assert page.get_by_label(items[1]["answers"][0], exact=True).count() == 0, (
            "hidden while it is not valid"
        )
        page.get_by_label("Valid").press("Space")
        page.get_by_label(items[1]["answers"][0], exact=True).press("Space")
        page.get_by_label("Answers that are missing").fill("wash the cup")
        page.get_by_label("Answers that are missing").press("Tab")
        assert findings(page) == []
        page.get_by_role("button", name="Save, to the next one").press("Enter")
        page.get_by_text("0 answers to rule on").wait_for()
        page.get_by_role("button", name="Keep with the recording").press("Enter")
        page.get_by_text("Kept in annotations/").wait_for()
        assert desk.problems == []
    kitchen.tools.films.close()
    kept = json.loads((folder / "annotations" / "questions-1.json").read_text())["questions"]
    said = [one for row in kept for one in row["verification"]["judges"][1:]]
    assert {(one["multimodal"], one["procedural"]) for one in said} == {(True, False)}
    assert [row["question_approved_by"] for row in kept] == [None] + ["annotator"] * (asked - 1)
    assert (kept[1]["answer_approved_by"][0], kept[1]["answer_approved_by"][-1]) == ("adjudicator",) * 2
    assert {*kept[2]["answer_approved_by"]} == {"annotator"}
    assert [row["adjudication"] is None for row in kept] == [number != 1 for number in range(asked)]
    assert kept[1]["verification"]["answers"] == items[1]["answers"]
    ruled = dict(zip(kept[1]["adjudication"]["candidates"], kept[1]["adjudication"]["answers"], strict=True))
    assert [text for text, holds in ruled.items() if holds] == [items[1]["answers"][0]]
    assert [row["valid"] for row in kept] == [number != 0 for number in range(asked)]
    assert kept[1]["answers"][0] == items[1]["answers"][0]
    assert (kept[1]["answers"][-1], kept[1]["answer_tags"][-1]) == ("wash the cup", "adjudicator")
    out = tmp_path / "verified.json"
    done = CliRunner().invoke(
        main, ["export", "promqa", str(folder), "--out", str(out), "--verified", "--json"]
    )
    assert done.exit_code == 0, done.output
    shown = third.get(address).json()["agreement"]
    assert json.loads(done.stdout)["agreement"] == shown
    assert {found["approved"] for found in shown.values()} > {1.0}, "one was rejected by somebody"
    rows = json.loads(out.read_text())
    behind = [row["question_id"].removeprefix(row["recording_id"]) for row in rows]
    assert behind == [row["question_id"].removeprefix(row["recording_id"]) for row in kept if row["valid"]]
    assert rows[0]["verification"]["judges"][1]["question"] is True
    assert rows[0]["question"].startswith("Written")
    assert rows[0]["generation"] == written[1]["generation"], "everything that was said is kept"
    assert rows[0]["answers"][-1] == "wash the cup"
    (plainly,) = (row for row in rows[-2:] if row["question"] == "Is it done?")
    assert {*plainly["answers"]} == {"Yes.", "No."}
    assert plainly["answer_sources"] == {"Yes.": ["A", "C"], "No.": ["B"]}
    assert rows[-1]["question_id"] == rows[-2]["question_id"] + "#2"
    assembly = tmp_path / "assembly.json"
    command = ["export", "promqa", str(folder), "--out", str(assembly), "--form", "assembly"]
    assert CliRunner().invoke(main, command).exit_code == 2, "of verified questions alone"
    assert CliRunner().invoke(main, [*command, "--verified"]).exit_code == 0
    records = json.loads(assembly.read_text())
    told = [row for row in rows if row["current_step"]["step_id"] != -1]
    assert [one["answers"] for one in records] == [row["answers"] for row in told]
    assert {*records[0]} == PUBLISHED_OF_ASSEMBLY
    seconds = [sum(60**k * int(x) for k, x in enumerate(row["end_time"].split(":")[::-1])) for row in told]
    assert [one["video"]["end"] for one in records] == seconds
    windows = tmp_path / "windows.json"
    command = ["export", "windows", str(folder), "--sizes", "2", "--out", str(windows)]
    assert CliRunner().invoke(main, command).exit_code == 0
    first_s = min(start for one in json.loads(windows.read_text()) for start, _ in one["spans"])
    assert {one["video"]["start"] for one in records} == {first_s}
    assert {(one["source"], one["multimodal"]) for one in records} == {("machine", False)}

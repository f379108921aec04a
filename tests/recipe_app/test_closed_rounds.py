"""One rule for every kind of review: answers that are shown to all change no more, and no judge rules."""

from __future__ import annotations

from typing import Any

import pytest
from numbered_recording import write_numbered

from recipe_app.review.film_evidence import EVIDENCE
from recipe_app.review.judged_answers import ERRORS
from recipe_app.review.marks import STEPS
from recipe_app.review.opinions import OPINIONS
from recipe_app.review.question_rounds import QUESTIONS
from storage.manifest import edit_manifest

pytestmark = pytest.mark.slow

FACTS = {"steps": [{"node": 1, "label": "S01"}], "touches": [], "frames": 9, "fps": [30, 1], "sha256": "0"}
ANSWER = {"answer": {"item": "one", "question": "success", "answer": "yes"}}
EDIT = {"edits": [{"mark": "0" * 16, "node": 1}]}
KINDS: list[tuple[Any, str, str, dict[str, Any]]] = [
    (STEPS, "marks", "round", EDIT),
    (ERRORS.review, "errors", "errors/assign", ANSWER),
    (QUESTIONS, "questions", "questions/assign", {"verdict": {"item": "one", "valid": True}}),
    (EVIDENCE, "evidence", "evidence/assign", EDIT),
    (OPINIONS["decisions"].review, "opinions/decisions", "opinions/decisions/assign", ANSWER),
    (OPINIONS["ratings"].review, "opinions/ratings", "opinions/ratings/assign", ANSWER),
]
"""A kind, its address, where people are asked, and an answer."""
RULINGS: dict[str, dict[str, Any]] = {
    "ruling": EDIT,
    "ruling/submit": {},
    "errors/rule": ANSWER,
    "questions/rule": {"verdict": {"item": "one", "valid": True}},
    "evidence/rule": {"item": "one", "take": "first"},
}


@pytest.fixture
def recording(kitchen: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """A recording with a folder, whose small film is there."""
    name = str(kitchen.choose()["recording"])
    write_numbered(kitchen.data, "take1")
    with edit_manifest(kitchen.data / "take1") as manifest:
        manifest["consent_scopes"] = ["annotate"]
    kitchen.tools.records.give_folder(name, "take1", actor="")
    ready = {"state": "ready", "facts": FACTS}
    monkeypatch.setattr(kitchen.tools.films, "state", lambda *_: ready)
    return name


def test_what_everybody_sees_changes_no_more_and_no_judge_rules(kitchen: Any, recording: str) -> None:
    people = [kitchen.desk("researcher") for _ in range(5)]
    ids = [one.get("/api/v1/me").json()["person"]["id"] for one in people]
    base, newcomer = f"/api/v1/desk/recordings/{recording}", kitchen.desk("researcher")

    def said(who: Any, where: str, body: dict[str, Any], *, named: bool) -> tuple[int, str]:
        op_id = {"op_id": kitchen.operation(recording, "note", {})["op_id"]} if named else {}
        answer = who.post(f"{base}/{where}", json={**op_id, **body})
        return answer.status_code, answer.json().get("error", "")

    for review, address, asking, body in KINDS:
        for one in ids[: review.least]:
            kitchen.tools.records.note(review.submitted, recording, {}, actor=one)
        tried = [
            said(who, where, given, named=named)
            for who in (people[0], newcomer)
            for where, given, named in (
                (address, body, True),
                (f"{address}/submit", {}, False),
                (asking, {"people": ids[: review.least]}, False),
            )
        ]
        closed = [(status, "no answer changes any more" in why) for status, why in tried]
        assert closed == [(409, True)] * 6, (review.what, tried)
    for where, body in RULINGS.items():
        status, why = said(people[0], where, body, named=where not in ("ruling/submit", "evidence/rule"))
        assert (status, "a judge does not rule" in why) == (409, True), (where, why)
    told = [who.get(f"{base}/errors").json()["rules"] for who in (people[0], newcomer)]
    assert told == [False, True], "the page offers a ruling to nobody who judged"

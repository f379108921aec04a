"""Rules for every kind of review: answers shown to all change no more, no judge rules, nothing without consent."""

from __future__ import annotations

from typing import Any

import pytest
from numbered_recording import write_numbered

from kitchensync.recipe_app.review.film_evidence import EVIDENCE
from kitchensync.recipe_app.review.judged_answers import ERRORS
from kitchensync.recipe_app.review.marks import STEPS
from kitchensync.recipe_app.review.opinions import OPINIONS
from kitchensync.recipe_app.review.question_rounds import QUESTIONS
from kitchensync.storage.manifest import edit_manifest

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


@pytest.mark.parametrize(
    ("missing", "status", "why"),
    [("consent", 409, "`annotate`"), ("folder", 404, "it has no folder of recorded data")],
)
def test_nothing_is_shown_or_kept_of_what_may_not_be_used(
    kitchen: Any, recording: str, missing: str, status: int, why: str
) -> None:
    one = kitchen.desk("researcher")
    if missing == "consent":
        with edit_manifest(kitchen.data / "take1") as manifest:
            manifest["consent_scopes"] = []
    else:
        recording = str(kitchen.choose()["recording"])
    before = kitchen.tools.records.ops(recording)
    page = f"/desk/recordings/{recording}"
    shown = ["marks", "ruling", "round", "marks/of/somebody", *(kind for _, kind, *_ in KINDS)]
    pages = ["steps", "round", "ruling", *(kind for _, kind, *_ in KINDS[1:])]
    answers = [one.get(f"/api/v1{page}/{where}") for where in shown] + [
        one.get(f"{page}/{where}") for where in pages
    ]
    op_id = kitchen.operation(recording, "note", {})["op_id"]
    posted = {
        where: body if "ruling/submit" in where else {"op_id": op_id, **body}
        for where, body in RULINGS.items()
    }
    posted["evidence/rule"] = RULINGS["evidence/rule"]
    for _, kind, asking, body in KINDS:
        posted |= {kind: {"op_id": op_id, **body}, f"{kind}/submit": {}, f"{kind}/accept": {}}
        posted[asking] = {"people": []}
    answers += [one.post(f"/api/v1{page}/{where}", json=body) for where, body in posted.items()]
    given = [(str(answer.request.url), answer.status_code, why in answer.text) for answer in answers]
    assert [answer for answer in given if answer[1:] != (status, True)] == []
    assert kitchen.tools.records.ops(recording) == before

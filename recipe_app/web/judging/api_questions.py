"""Questions about a recording's stopped film: asked, judged by people alone, ruled on, kept with the recording."""

from __future__ import annotations

from typing import Annotated, Any, cast

from fastapi import Request
from fastapi.responses import Response
from pydantic import Field

from recipe_app.errors import BadOperation, NotNow
from recipe_app.operations.kinds import OpId, Strict
from recipe_app.people.roles import Access
from recipe_app.releases.own import OwnRecording
from recipe_app.review.question_rounds import (
    ASKED,
    QUESTIONS,
    RULED,
    Item,
    QuestionForm,
    QuestionVerdict,
    agreement_of_judges,
    candidates,
    check_verdict,
    decide,
    record_of,
    require_judged,
    verdicts_of,
)
from recipe_app.review.questions_of_film import Written, questions_of
from recipe_app.review.rounds import Round, round_of
from recipe_app.web.desk.pages import render
from recipe_app.web.door.access import Asking, Route, Tools
from recipe_app.web.door.request_bodies import RequestBody
from recipe_app.web.judging.api_films import Nobody, film_folder
from recipe_app.web.judging.people_asked import Asked, ask_people, keep_judged, who_may
from storage.permission import Purpose

Ops = list[dict[str, Any]]
WRITTEN = RequestBody(4 << 20, at_once=2)
"""What a model wrote about many recordings, and what it was told."""


class JudgedQuestion(Strict):
    """What one person says of one question."""

    op_id: OpId
    verdict: QuestionVerdict


class QuestionsToAsk(Strict):
    """Questions that a model wrote; none: what can be asked is asked in fixed words; `form`: as which data set."""

    questions: Annotated[list[Written], Field(max_length=1000)] = Field(default_factory=list)
    form: QuestionForm = "cooking"


def questions_page(request: Request, tools: Tools, visitor: Asking, recording: str) -> Response:
    """The questions about a recording's film, to be verified."""
    tools.records.state(recording)
    may = who_may(tools, Access.STUDY)
    return render(request, "desk/questions.html", visitor=visitor, recording=recording, may=may)


def questions(tools: Tools, visitor: Asking, recording: str) -> dict[str, Any]:
    """Say what is asked, what one said so far and, when all have submitted, how they agree and what is to rule."""
    film_folder(tools, recording)
    ops = tools.records.ops(recording)
    items, here = _items(ops), round_of(ops, QUESTIONS)
    mine = verdicts_of(ops, QUESTIONS.edited, visitor.actor)
    said: dict[str, Any] = {
        "graph": _asked(ops).get("graph"),
        "form": _form(ops),
        "items": [{key: value for key, value in item.items() if key != "example"} for item in items],
        "mine": {name: one.model_dump() for name, one in mine.items()},
        "left": sum(item["item"] not in mine for item in items),
        **here.told(visitor.actor),
    }
    if not here.is_complete:
        return said
    judged, ruled = _judged(ops, here, items), verdicts_of(ops, RULED)
    standing = {}
    for item in items:
        words = [one[item["item"]] for one in judged]
        decided = decide(item, words, ruled.get(item["item"]))
        standing[item["item"]] = {
            "state": decided.state,
            "answers": decided.answers,
            "candidates": [text for text, _ in candidates(item, words)],
            "valid": [one.valid for one in words],
        }
    return said | {
        "standing": standing,
        "to_rule": sum(one["state"] == "to_rule" for one in standing.values()),
        "agreement": agreement_of_judges(items, judged),
    }


def ask_questions(tools: Tools, visitor: Asking, recording: str, body: QuestionsToAsk) -> dict[str, Any]:
    """Ask what can be asked about the film, or what a model wrote; asked once, so that everybody judges the same."""
    if items := _items(tools.records.ops(recording)):
        return {"questions": len(items)}
    with OwnRecording.open(film_folder(tools, recording), purpose=Purpose.ANNOTATE) as own:
        own.check_filmed()
        own.check_placed()
        asked = questions_of(own, body.questions) | {"form": body.form}
    tools.records.note(ASKED, recording, asked, actor=visitor.actor)
    return {"questions": len(asked["items"])}


def judge_question(tools: Tools, visitor: Asking, recording: str, body: JudgedQuestion) -> dict[str, Any]:
    """Keep what somebody says of a question."""
    film_folder(tools, recording)
    ops = tools.records.ops(recording)
    round_of(ops, QUESTIONS).require_open(visitor.actor)
    item = _named(ops, body.verdict.item)
    check_verdict(body.verdict, item, len(item["answers"]) if item else 0)
    said = body.verdict.model_dump()
    tools.records.note(QUESTIONS.edited, recording, said, actor=visitor.actor, op_id=body.op_id)
    return {"item": body.verdict.item}


def submit_questions(tools: Tools, visitor: Asking, recording: str, body: Nobody) -> dict[str, Any]:
    """Say that one has judged every question."""
    ops = tools.records.ops(recording)
    round_of(ops, QUESTIONS).require_open(visitor.actor)
    require_judged(verdicts_of(ops, QUESTIONS.edited, visitor.actor), _items(ops))
    tools.records.note(QUESTIONS.submitted, recording, {}, actor=visitor.actor)
    return {"questions": len(_items(ops))}


def assign_questions(tools: Tools, visitor: Asking, recording: str, body: Asked) -> dict[str, Any]:
    """Ask people to judge the questions; from then on only they may."""
    tools.records.state(recording)
    if len(body.each) != QUESTIONS.least:
        raise BadOperation("ask {count} people, no more and no less", count=QUESTIONS.least)
    return ask_people(tools, visitor, recording, QUESTIONS, body, Access.STUDY)


def rule_question(tools: Tools, visitor: Asking, recording: str, body: JudgedQuestion) -> dict[str, Any]:
    """Keep what the adjudicator says of a question on which judges differ; not one of the judges."""
    ops = tools.records.ops(recording)
    here, item = round_of(ops, QUESTIONS), _named(ops, body.verdict.item)
    here.require_ruler(visitor.actor)
    words = [one[item["item"]] for one in _judged(ops, here, [item])] if item else []
    check_verdict(body.verdict, item, len(candidates(item, words)) if item else 0)
    tools.records.note(RULED, recording, body.verdict.model_dump(), actor=visitor.actor, op_id=body.op_id)
    return {"item": body.verdict.item}


def accept_questions(tools: Tools, visitor: Asking, recording: str, body: Nobody) -> dict[str, Any]:
    """Keep the verified questions as a version in the recording's folder."""
    ops = tools.records.ops(recording)
    items, here = _items(ops), round_of(ops, QUESTIONS)
    here.require_complete()
    judged, ruled = _judged(ops, here, items), verdicts_of(ops, RULED)
    rows = []
    for item in items:
        words = [one[item["item"]] for one in judged]
        decided = decide(item, words, ruled.get(item["item"]))
        if decided.state == "to_rule":
            raise NotNow("{count} answers differ and were not ruled on yet", count=1)
        rows.append(record_of(item, words, decided, _form(ops)))
    version = keep_judged(tools, visitor, recording, "questions", {"questions": rows})
    return {"version": version, "questions": len(rows)}


def _asked(ops: Ops) -> dict[str, Any]:
    return next((op["body"] for op in reversed(ops) if op["kind"] == ASKED), {"items": []})


def _form(ops: Ops) -> QuestionForm:
    return cast("QuestionForm", _asked(ops).get("form", "cooking"))


def _items(ops: Ops) -> list[Item]:
    return list(_asked(ops)["items"])


def _named(ops: Ops, name: str) -> Item | None:
    return next((item for item in _items(ops) if item["item"] == name), None)


def _judged(ops: Ops, here: Round, items: list[Item]) -> list[dict[str, QuestionVerdict]]:
    people = [verdicts_of(ops, QUESTIONS.edited, person) for person in here.people]
    return [{item["item"]: one[item["item"]] for item in items} for one in people]


QUESTION = "/api/v1/desk/recordings/{recording}/questions"
ROUTES = [
    Route("/desk/recordings/{recording}/questions", questions_page, Access.STUDY, page=True),
    Route(QUESTION, questions, Access.STUDY),
    Route(QUESTION, judge_question, Access.STUDY, "POST"),
    Route(f"{QUESTION}/ask", ask_questions, Access.STUDY, "POST", body=WRITTEN),
    Route(f"{QUESTION}/submit", submit_questions, Access.STUDY, "POST"),
    Route(f"{QUESTION}/assign", assign_questions, Access.STUDY, "POST"),
    Route(f"{QUESTION}/rule", rule_question, Access.STUDY, "POST"),
    Route(f"{QUESTION}/accept", accept_questions, Access.STUDY, "POST"),
]

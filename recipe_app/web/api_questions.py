"""Questions about a recording's stopped film: asked, judged by people alone, ruled on, kept with the recording."""

from __future__ import annotations

import time
from typing import Any

from fastapi import Request
from fastapi.responses import Response

from recipe_app.errors import NotNow
from recipe_app.operations.kinds import OpId, Strict
from recipe_app.people.roles import Access
from recipe_app.releases.own import OwnRecording
from recipe_app.review.question_rounds import (
    ASKED,
    QUESTIONS,
    RULED,
    Item,
    QuestionVerdict,
    agreement_of_judges,
    candidates,
    check_verdict,
    decide,
    record_of,
    require_judged,
    verdicts_of,
)
from recipe_app.review.questions_of_film import questions_of
from recipe_app.review.rounds import ASSIGNED, Round, round_of
from recipe_app.store import tables
from recipe_app.web.access import Asking, Route, Tools
from recipe_app.web.api_films import Nobody, film_folder
from recipe_app.web.api_marks import Asked, people_who_may
from recipe_app.web.pages import render
from storage.annotation_folder import add_questions_version
from storage.permission import Purpose

Ops = list[dict[str, Any]]


class JudgedQuestion(Strict):
    """What one person says of one question."""

    op_id: OpId
    verdict: QuestionVerdict


def questions_page(request: Request, tools: Tools, visitor: Asking, recording: str) -> Response:
    """The questions about a recording's film, to be verified."""
    tools.records.state(recording)
    rows = tools.records.rows(tables.person, order=tables.person.c.pseudonym)
    may = {row["id"]: row["pseudonym"] for row in people_who_may(rows, Access.STUDY)}
    return render(request, "desk/questions.html", visitor=visitor, recording=recording, may=may)


def questions(tools: Tools, visitor: Asking, recording: str) -> dict[str, Any]:
    """Say what is asked, what one said so far and, when all have submitted, how they agree and what is to rule."""
    film_folder(tools, recording)
    ops = tools.records.ops(recording)
    items, here = _items(ops), round_of(ops, QUESTIONS)
    mine = verdicts_of(ops, QUESTIONS.edited, visitor.actor)
    said: dict[str, Any] = {
        "items": [{key: value for key, value in item.items() if key != "example"} for item in items],
        "mine": {name: one.model_dump() for name, one in mine.items()},
        "left": sum(item["item"] not in mine for item in items),
        "asked": not here.is_assigned or visitor.actor in here.people,
        "people": list(here.people),
        "complete": here.is_complete,
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


def ask_questions(tools: Tools, visitor: Asking, recording: str, body: Nobody) -> dict[str, Any]:
    """Ask what can be asked about the film; asked once, so that everybody judges the same."""
    if items := _items(tools.records.ops(recording)):
        return {"questions": len(items)}
    with OwnRecording.open(film_folder(tools, recording), purpose=Purpose.ANNOTATE) as own:
        own.check_filmed()
        own.check_placed()
        items = questions_of(own)
    tools.records.note(ASKED, recording, {"items": items}, actor=visitor.actor)
    return {"questions": len(items)}


def judge_question(tools: Tools, visitor: Asking, recording: str, body: JudgedQuestion) -> dict[str, Any]:
    """Keep what somebody says of a question."""
    film_folder(tools, recording)
    ops = tools.records.ops(recording)
    round_of(ops, QUESTIONS).require_member(visitor.actor)
    item = _named(ops, body.verdict.item)
    check_verdict(body.verdict, item, len(item["answers"]) if item else 0)
    said = body.verdict.model_dump()
    tools.records.note(QUESTIONS.edited, recording, said, actor=visitor.actor, op_id=body.op_id)
    return {"item": body.verdict.item}


def submit_questions(tools: Tools, visitor: Asking, recording: str, body: Nobody) -> dict[str, Any]:
    """Say that one has judged every question."""
    ops = tools.records.ops(recording)
    round_of(ops, QUESTIONS).require_member(visitor.actor)
    require_judged(verdicts_of(ops, QUESTIONS.edited, visitor.actor), _items(ops))
    tools.records.note(QUESTIONS.submitted, recording, {}, actor=visitor.actor)
    return {"questions": len(_items(ops))}


def assign_questions(tools: Tools, visitor: Asking, recording: str, body: Asked) -> dict[str, Any]:
    """Ask people to judge the questions; from then on only they may."""
    tools.records.state(recording)
    people_who_may(
        [tools.records.row(tables.person, person) for person in body.people], Access.STUDY, strict=True
    )
    said = {"what": QUESTIONS.what, "people": list(dict.fromkeys(body.people))}
    tools.records.note(ASSIGNED, recording, said, actor=visitor.actor)
    return said


def rule_question(tools: Tools, visitor: Asking, recording: str, body: JudgedQuestion) -> dict[str, Any]:
    """Keep what the adjudicator says of a question on which judges differ; not one of the judges."""
    ops = tools.records.ops(recording)
    here, item = round_of(ops, QUESTIONS), _named(ops, body.verdict.item)
    here.require_complete()
    if visitor.actor in here.people:
        raise NotNow("a judge does not rule: ask somebody else")
    words = [one[item["item"]] for one in _judged(ops, here, [item])] if item else []
    check_verdict(body.verdict, item, len(candidates(item, words)) if item else 0)
    tools.records.note(RULED, recording, body.verdict.model_dump(), actor=visitor.actor, op_id=body.op_id)
    return {"item": body.verdict.item}


def accept_questions(tools: Tools, visitor: Asking, recording: str, body: Nobody) -> dict[str, Any]:
    """Keep the verified questions as a version in the recording's folder."""
    folder, ops = film_folder(tools, recording), tools.records.ops(recording)
    items, here = _items(ops), round_of(ops, QUESTIONS)
    here.require_complete()
    judged, ruled = _judged(ops, here, items), verdicts_of(ops, RULED)
    rows = []
    for item in items:
        words = [one[item["item"]] for one in judged]
        decided = decide(item, words, ruled.get(item["item"]))
        if decided.state == "to_rule":
            raise NotNow("{count} answers differ and were not ruled on yet", count=1)
        rows.append(record_of(item, words, decided))
    by = visitor.person["pseudonym"] if visitor.person else ""
    content = {"author": by, "kept_utc_ns": time.time_ns(), "questions": rows}
    return {"version": add_questions_version(folder, content), "questions": len(rows)}


def _items(ops: Ops) -> list[Item]:
    return next((op["body"]["items"] for op in reversed(ops) if op["kind"] == ASKED), [])


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
    Route(f"{QUESTION}/ask", ask_questions, Access.STUDY, "POST"),
    Route(f"{QUESTION}/submit", submit_questions, Access.STUDY, "POST"),
    Route(f"{QUESTION}/assign", assign_questions, Access.STUDY, "POST"),
    Route(f"{QUESTION}/rule", rule_question, Access.STUDY, "POST"),
    Route(f"{QUESTION}/accept", accept_questions, Access.STUDY, "POST"),
]

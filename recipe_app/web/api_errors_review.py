"""Errors of a recording, judged by people alone, compared, ruled on, and kept with the recording."""

from __future__ import annotations

import time
from typing import Any

from fastapi import Request
from fastapi.responses import Response

from recipe_app.cooking.collaborators import Collaborators
from recipe_app.errors import NotNow
from recipe_app.operations.kinds import OpId, Strict
from recipe_app.people.accounts import Visitor
from recipe_app.people.roles import Access
from recipe_app.review.judged_answers import (
    ERRORS,
    Answers,
    GivenAnswer,
    agreement_of_answers,
    answers_of,
    open_of,
    require_all,
    settled,
)
from recipe_app.review.marks import STEPS
from recipe_app.review.rounds import ASSIGNED, round_of
from recipe_app.store import tables
from recipe_app.web.access import Asking, Route, Tools
from recipe_app.web.api_films import Nobody, film_folder
from recipe_app.web.api_marks import Asked, people_who_may
from recipe_app.web.pages import render
from storage.annotation_folder import add_errors_version


class Judged(Strict):
    """One answer of one person."""

    op_id: OpId
    answer: GivenAnswer


def errors_page(request: Request, tools: Tools, visitor: Asking, recording: str) -> Response:
    """The errors of a recording, to be judged on its film."""
    tools.records.state(recording)
    rows = tools.records.rows(tables.person, order=tables.person.c.pseudonym)
    may = {row["id"]: row["pseudonym"] for row in people_who_may(rows, Access.STUDY)}
    return render(request, "desk/judge_errors.html", visitor=visitor, recording=recording, may=may)


def errors(tools: Tools, visitor: Asking, recording: str) -> dict[str, Any]:
    """Say which errors there are, what one answered, who judges, and, when all have submitted, how they agree."""
    ops, items = _open(tools, visitor, recording)
    here = round_of(ops, ERRORS.review)
    mine = answers_of(ops, ERRORS.review.edited, visitor.actor)
    said: dict[str, Any] = {
        "errors": list(items.values()),
        "questions": {question: list(answers) for question, answers in ERRORS.questions.items()},
        "mine": mine,
        "left": open_of(mine, items, ERRORS),
        "asked": not here.is_assigned or visitor.actor in here.people,
        "people": {person: work.is_submitted for person, work in here.people.items()},
        "complete": here.is_complete,
    }
    if not here.is_complete:
        return said
    people, ruled = _people(ops, list(here.people)), answers_of(ops, ERRORS.ruled)
    final, disputed = settled(people, ruled, items, ERRORS)
    return said | {
        "agreement": agreement_of_answers(people, list(items), ERRORS),
        "final": final,
        "disputed": [{"item": item, "question": question} for item, question in disputed],
        "answers": list(people.values()),
    }


def judge(tools: Tools, visitor: Asking, recording: str, body: Judged) -> dict[str, Any]:
    """Keep one answer."""
    ops, items = _open(tools, visitor, recording)
    round_of(ops, ERRORS.review).require_member(visitor.actor)
    return _keep(tools, visitor, recording, body, ERRORS.review.edited, items)


def submit_errors(tools: Tools, visitor: Asking, recording: str, body: Nobody) -> dict[str, Any]:
    """Say that one has judged every error."""
    ops, items = _open(tools, visitor, recording)
    round_of(ops, ERRORS.review).require_member(visitor.actor)
    require_all(answers_of(ops, ERRORS.review.edited, visitor.actor), items, ERRORS)
    tools.records.note(ERRORS.review.submitted, recording, {}, actor=visitor.actor)
    return {"errors": len(items)}


def assign_errors(tools: Tools, visitor: Asking, recording: str, body: Asked) -> dict[str, Any]:
    """Ask people to judge the errors of a recording; from then on only they may."""
    tools.records.state(recording)
    people_who_may(
        [tools.records.row(tables.person, person) for person in body.people], Access.STUDY, strict=True
    )
    said = {"what": ERRORS.review.what, "people": list(dict.fromkeys(body.people))}
    tools.records.note(ASSIGNED, recording, said, actor=visitor.actor)
    return said


def rule_error(tools: Tools, visitor: Asking, recording: str, body: Judged) -> dict[str, Any]:
    """Keep the answer that holds where people differ."""
    ops, items = _open(tools, visitor, recording)
    round_of(ops, ERRORS.review).require_complete()
    return _keep(tools, visitor, recording, body, ERRORS.ruled, items)


def accept_errors(tools: Tools, visitor: Asking, recording: str, body: Nobody) -> dict[str, Any]:
    """Keep what was agreed and ruled as a version of the recording's errors."""
    ops, items = _open(tools, visitor, recording)
    here = round_of(ops, ERRORS.review)
    here.require_complete()
    people = _people(ops, list(here.people))
    final, disputed = settled(people, answers_of(ops, ERRORS.ruled), items, ERRORS)
    if disputed:
        raise NotNow("{count} answers differ and were not ruled on yet", count=len(disputed))
    content = {
        "source": "reviewer",
        "author": visitor.person["pseudonym"] if visitor.person else "",
        "kept_utc_ns": time.time_ns(),
        "errors": [item | {"judged": final[name]} for name, item in items.items()],
        "answers": list(people.values()),
    }
    return {"version": add_errors_version(film_folder(tools, recording), content), "errors": len(items)}


def _open(
    tools: Collaborators, visitor: Visitor, recording: str
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return operations and errors; not for somebody who still marks the steps of it. Raises NotNow."""
    state, ops = tools.records.state(recording), tools.records.ops(recording)
    steps = round_of(ops, STEPS)
    if steps.is_assigned and visitor.actor in steps.people and not steps.people[visitor.actor].is_submitted:
        raise NotNow("mark the steps of this recording first: who knows its errors looks for them")
    words = state["recording"]["steps"]
    kept = (
        "error_id",
        "node",
        "planned",
        "categories",
        "expected",
        "actual",
        "text",
        "description",
        "outcome",
    )
    return ops, {
        error["error_id"]: {key: error.get(key) for key in kept}
        | {"step": words.get(str(error["node"]), {}).get("text", "")}
        for error in state["errors"].values()
        if not error["removed"]
    }


def _people(ops: list[dict[str, Any]], people: list[str]) -> dict[str, Answers]:
    return {person: answers_of(ops, ERRORS.review.edited, person) for person in people}


def _keep(
    tools: Collaborators, visitor: Visitor, recording: str, body: Judged, kind: str, items: dict[str, Any]
) -> dict[str, Any]:
    said = body.answer
    ERRORS.check(said.question, said.answer, said.item, items)
    tools.records.note(kind, recording, said.model_dump(), actor=visitor.actor, op_id=body.op_id)
    mine = answers_of(tools.records.ops(recording), kind, visitor.actor)
    return {"left": open_of(mine, items, ERRORS)}


REVIEW = "/api/v1/desk/recordings/{recording}/errors"
ROUTES = [
    Route("/desk/recordings/{recording}/errors", errors_page, Access.STUDY, page=True),
    Route(REVIEW, errors, Access.STUDY),
    Route(REVIEW, judge, Access.STUDY, "POST"),
    Route(f"{REVIEW}/submit", submit_errors, Access.STUDY, "POST"),
    Route(f"{REVIEW}/assign", assign_errors, Access.STUDY, "POST"),
    Route(f"{REVIEW}/rule", rule_error, Access.STUDY, "POST"),
    Route(f"{REVIEW}/accept", accept_errors, Access.STUDY, "POST"),
]

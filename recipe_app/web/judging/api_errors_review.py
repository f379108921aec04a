"""Errors of a recording, judged by people alone, compared, ruled on, and kept with the recording."""

from __future__ import annotations

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
from recipe_app.review.rounds import round_of
from recipe_app.web.desk.pages import render
from recipe_app.web.door.access import Asking, Route, Tools
from recipe_app.web.judging.api_films import Nobody
from recipe_app.web.judging.people_asked import Asked, ask_people, keep_judged, who_may


class Judged(Strict):
    """One answer of one person."""

    op_id: OpId
    answer: GivenAnswer


def errors_page(request: Request, tools: Tools, visitor: Asking, recording: str) -> Response:
    """The errors of a recording, to be judged on its film."""
    tools.records.state(recording)
    may = who_may(tools, Access.STUDY)
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
        **here.told(visitor.actor),
        "people": {person: work.is_submitted for person, work in here.people.items()},
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
    round_of(ops, ERRORS.review).require_open(visitor.actor)
    return _keep(tools, visitor, recording, body, ERRORS.review.edited, items)


def submit_errors(tools: Tools, visitor: Asking, recording: str, body: Nobody) -> dict[str, Any]:
    """Say that one has judged every error."""
    ops, items = _open(tools, visitor, recording)
    round_of(ops, ERRORS.review).require_open(visitor.actor)
    require_all(answers_of(ops, ERRORS.review.edited, visitor.actor), items, ERRORS)
    tools.records.note(ERRORS.review.submitted, recording, {}, actor=visitor.actor)
    return {"errors": len(items)}


def assign_errors(tools: Tools, visitor: Asking, recording: str, body: Asked) -> dict[str, Any]:
    """Ask people to judge the errors of a recording; from then on only they may."""
    tools.records.state(recording)
    return ask_people(tools, visitor, recording, ERRORS.review, body, Access.STUDY)


def rule_error(tools: Tools, visitor: Asking, recording: str, body: Judged) -> dict[str, Any]:
    """Keep the answer that holds where people differ; not by one of those who judged."""
    ops, items = _open(tools, visitor, recording)
    round_of(ops, ERRORS.review).require_ruler(visitor.actor)
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
        "errors": [item | {"judged": final[name]} for name, item in items.items()],
        "answers": list(people.values()),
    }
    return {"version": keep_judged(tools, visitor, recording, "errors", content), "errors": len(items)}


def _open(
    tools: Collaborators, visitor: Visitor, recording: str
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return operations and errors; not for somebody who still marks the steps of it. Raises NotNow."""
    state, ops = tools.records.state(recording), tools.records.ops(recording)
    if round_of(ops, STEPS).is_asked_still(visitor.actor):
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

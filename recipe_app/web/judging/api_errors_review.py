"""Errors of a recording, judged by people alone, compared, ruled on, and kept with the recording."""

from __future__ import annotations

from typing import Annotated, Any

from kitchensync.dataset.errors import NotNow
from kitchensync.dataset.operations.reduce import reduce_log
from kitchensync.recipe_app.review.judged_answers import (
    ERRORS,
    agreement_of_answers,
    answers_of,
    open_of,
    require_all,
    settled,
)
from kitchensync.recipe_app.review.marks import STEPS
from kitchensync.recipe_app.review.rounds import round_of
from kitchensync.recipe_app.web.judging.review_routes import Judged, RecordingWork, on_recording, routes

BEGIN = on_recording(ERRORS.review)
Begun = Annotated[RecordingWork, BEGIN]
Items = dict[str, Any]
SHOWN = ("error_id", "node", "planned", "categories", "expected", "actual", "text", "description", "outcome")


def _items(work: RecordingWork) -> Items:
    """Return the errors by id; not for somebody who still marks the steps. Raises NotNow."""
    if round_of(work.ops, STEPS).is_asked_still(work.actor):
        raise NotNow("mark the steps of this recording first: who knows its errors looks for them")
    state = reduce_log(work.ops)
    words = state["recording"]["steps"]
    return {
        error["error_id"]: {key: error.get(key) for key in SHOWN}
        | {"step": words.get(str(error["node"]), {}).get("text", "")}
        for error in state["errors"].values()
        if not error["removed"]
    }


def _told(work: RecordingWork, items: Items) -> dict[str, Any]:
    mine = work.mine(answers_of)
    return {
        "errors": list(items.values()),
        "questions": ERRORS.questions,
        "mine": mine,
        "left": open_of(mine, items, ERRORS),
        "people": {person: done.is_submitted for person, done in work.here.people.items()},
    }


def _compared(work: RecordingWork, items: Items) -> dict[str, Any]:
    people = work.of_everybody(answers_of)
    final, disputed = settled(people, answers_of(work.ops, ERRORS.ruled), items, ERRORS)
    return {
        "agreement": agreement_of_answers(people, list(items), ERRORS),
        "final": final,
        "disputed": [{"item": item, "question": question} for item, question in disputed],
        "answers": list(people.values()),
    }


def _accepted(work: RecordingWork, items: Items) -> dict[str, Any]:
    found = _compared(work, items)
    if found["disputed"]:
        raise NotNow("{count} answers differ and were not ruled on yet", count=len(found["disputed"]))
    errors = [item | {"judged": found["final"][name]} for name, item in items.items()]
    return {"source": "reviewer", "errors": errors, "answers": found["answers"]}


def judge(work: Begun, body: Judged) -> dict[str, Any]:
    """Keep one answer."""
    items = _items(work)
    work.here.require_open(work.actor)
    return _keep(work, body, ERRORS.review.edited, items)


def rule_error(work: Begun, body: Judged) -> dict[str, Any]:
    """Keep the answer that holds where people differ; not by one of those who judged."""
    items = _items(work)
    work.here.require_ruler(work.actor)
    return _keep(work, body, ERRORS.ruled, items)


def _keep(work: RecordingWork, body: Judged, kind: str, items: Items) -> dict[str, Any]:
    said = body.answer
    ERRORS.check(said.question, said.answer, said.item, items)
    work.keep(kind, said.model_dump(), body.op_id)
    mine = answers_of(work.tools.records.ops(work.subject), kind, work.actor)
    return {"left": open_of(mine, items, ERRORS)}


ROUTES = routes(
    "errors",
    "desk/judge_errors.html",
    BEGIN,
    counted="errors",
    items=_items,
    told=_told,
    compared=_compared,
    require_done=lambda work, items: require_all(work.mine(answers_of), items, ERRORS),
    accepted=_accepted,
    judge=judge,
    rule=rule_error,
)

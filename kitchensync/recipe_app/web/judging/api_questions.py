"""Questions about a recording's stopped film: asked, judged by people alone, ruled on, kept with the recording."""

from __future__ import annotations

from typing import Annotated, Any, cast

from pydantic import Field

from kitchensync.dataset.promqa.judge_agreement import agreement_of_judges
from kitchensync.dataset.promqa.questions import KeptJudgement
from kitchensync.dataset.source.own_recording import OwnRecording
from kitchensync.operations.errors import BadOperation, NotNow
from kitchensync.operations.operation_kinds import OpId, Strict
from kitchensync.recipe_app.review.judged_answers import require_none_left
from kitchensync.recipe_app.review.question_rounds import (
    ASKED,
    QUESTIONS,
    RULED,
    Item,
    QuestionForm,
    QuestionVerdict,
    candidates,
    check_verdict,
    decide,
    record_of,
    verdicts_of,
)
from kitchensync.recipe_app.review.questions_of_film import Written, questions_of
from kitchensync.recipe_app.web.door.access import JsonObject
from kitchensync.recipe_app.web.door.request_bodies import RequestBody
from kitchensync.recipe_app.web.judging.review_routes import RecordingWork, on_recording, routes
from kitchensync.storage.consent import Purpose

Items = dict[str, Item]
Said = tuple[Item, list[QuestionVerdict], QuestionVerdict | None]
"""A question, what each judge said of it, and what the adjudicator said."""
BEGIN = on_recording(QUESTIONS)
Begun = Annotated[RecordingWork, BEGIN]
WRITTEN = RequestBody(4 << 20, at_once=2)
"""What was written about many recordings, and what models were told."""
HIDDEN = ("example", "sources")
"""What judges are not told of a question."""


class JudgedQuestion(Strict):
    """What one person says of one question."""

    op_id: OpId
    verdict: QuestionVerdict


class QuestionsToAsk(Strict):
    """Questions that were written; without: what can be asked is asked in fixed words; `form`: as which data set."""

    questions: Annotated[list[Written], Field(max_length=10_000)] | None = None
    form: QuestionForm = "cooking"


def _items(work: RecordingWork) -> Items:
    return {item["item"]: item for item in work.asked(ASKED)["items"]}


def _told(work: RecordingWork, items: Items) -> dict[str, Any]:
    asked, mine = work.asked(ASKED), work.mine(verdicts_of)
    return {
        "graph": asked.get("graph"),
        "form": asked.get("form", "cooking"),
        "items": [
            {key: value for key, value in item.items() if key not in HIDDEN} for item in items.values()
        ],
        "mine": {name: one.model_dump() for name, one in mine.items()},
        "left": len(items.keys() - mine.keys()),
    }


def _said(work: RecordingWork, items: Items) -> list[Said]:
    judged, ruled = work.of_everybody(verdicts_of).values(), verdicts_of(work.ops, RULED)
    return [(item, [one[name] for one in judged], ruled.get(name)) for name, item in items.items()]


def _compared(work: RecordingWork, items: Items) -> dict[str, Any]:
    form, found = work.asked(ASKED).get("form", "cooking"), _said(work, items)
    standing = {}
    for item, words, ruling in found:
        decided = decide(item, words, ruling)
        standing[item["item"]] = {
            "state": decided.state,
            "answers": decided.answers,
            "candidates": [text for text, _ in candidates(item, words)],
            "valid": [one.valid for one in words],
        }
    return {
        "standing": standing,
        "to_rule": sum(one["state"] == "to_rule" for one in standing.values()),
        "agreement": agreement_of_judges(
            (item["type"], [cast(KeptJudgement, one.told(form)) for one in words]) for item, words, _ in found
        ),
    }


def _accepted(work: RecordingWork, items: Items) -> dict[str, Any]:
    form, found = work.asked(ASKED).get("form", "cooking"), _said(work, items)
    if left := sum(decide(*one).state == "to_rule" for one in found):
        raise NotNow("{count} answers differ and were not ruled on yet", count=left)
    return {"questions": [record_of(*one, form) for one in found]}


def ask_questions(work: Begun, body: QuestionsToAsk) -> JsonObject:
    """Ask what can be asked about the film, or what a model wrote; asked once, so that everybody judges the same."""
    if items := _items(work):
        return {"questions": len(items)}
    if body.questions == []:
        raise BadOperation("the file holds no question with an answer")
    with OwnRecording.open(work.folder, purpose=Purpose.ANNOTATE) as own:
        own.check_filmed()
        own.check_placed()
        asked = questions_of(own, body.questions or ()) | {"form": body.form}
    work.keep(ASKED, asked)
    return {"questions": len(asked["items"])}


def judge_question(work: Begun, body: JudgedQuestion) -> JsonObject:
    """Keep what somebody says of a question."""
    item = _items(work).get(body.verdict.item)
    work.here.require_open(work.actor)
    check_verdict(body.verdict, item, len(item["answers"]) if item else 0)
    work.keep(QUESTIONS.edited, body.verdict.model_dump(), body.op_id)
    return {"item": body.verdict.item}


def rule_question(work: Begun, body: JudgedQuestion) -> JsonObject:
    """Keep what the adjudicator says of a question on which judges differ; not one of the judges."""
    item = _items(work).get(body.verdict.item)
    work.here.require_ruler(work.actor)
    words = [one[item["item"]] for one in work.of_everybody(verdicts_of).values()] if item else []
    check_verdict(body.verdict, item, len(candidates(item, words)) if item else 0)
    work.keep(RULED, body.verdict.model_dump(), body.op_id)
    return {"item": body.verdict.item}


ROUTES = routes(
    "questions",
    "desk/questions.html",
    BEGIN,
    counted="questions",
    items=_items,
    told=_told,
    compared=_compared,
    require_done=lambda work, items: require_none_left(len(items.keys() - work.mine(verdicts_of).keys())),
    accepted=_accepted,
    judge=judge_question,
    ask=ask_questions,
    rule=rule_question,
    ask_body=WRITTEN,
)

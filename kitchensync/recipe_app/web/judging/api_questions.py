"""Questions about a recording's stopped video: judged independently, ruled on, saved with the recording."""

from __future__ import annotations

from typing import Annotated, Any, cast

from pydantic import Field

from kitchensync.dataset.promqa.judge_agreement import agreement_of_judges
from kitchensync.dataset.promqa.questions import KeptJudgement
from kitchensync.dataset.source.own_recording import OwnRecording
from kitchensync.operations.errors import BadOperation, NotNow
from kitchensync.operations.operation_kinds import OpId, Strict
from kitchensync.recipe_app.review.judged_answers import require_all_answered
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
JudgedItem = tuple[Item, list[QuestionVerdict], QuestionVerdict | None]
"""A question, the verdict of each judge, and that of the adjudicator."""
BEGIN = on_recording(QUESTIONS)
Begun = Annotated[RecordingWork, BEGIN]
WRITTEN = RequestBody(4 << 20, at_once=2)
"""Questions about many recordings, and the prompts of models."""
HIDDEN = ("example", "sources")
"""Fields of a question that judges do not get."""


class JudgedQuestion(Strict):
    """One person's verdict on one question."""

    op_id: OpId
    verdict: QuestionVerdict


class QuestionsToAsk(Strict):
    """Written questions, or None for those with a fixed wording; `form` names the data set to follow."""

    questions: Annotated[list[Written], Field(max_length=10_000)] | None = None
    form: QuestionForm = "cooking"


def _items(work: RecordingWork) -> Items:
    return {item["item"]: item for item in work.choice(ASKED)["items"]}


def _page_state(work: RecordingWork, items: Items) -> dict[str, Any]:
    choice, mine = work.choice(ASKED), work.mine(verdicts_of)
    return {
        "graph": choice.get("graph"),
        "form": choice.get("form", "cooking"),
        "items": [
            {key: value for key, value in item.items() if key not in HIDDEN} for item in items.values()
        ],
        "mine": {name: verdict.model_dump() for name, verdict in mine.items()},
        "left": len(items.keys() - mine.keys()),
    }


def _judged(work: RecordingWork, items: Items) -> list[JudgedItem]:
    judged, ruled = work.of_everybody(verdicts_of).values(), verdicts_of(work.ops, RULED)
    return [(item, [verdicts[name] for verdicts in judged], ruled.get(name)) for name, item in items.items()]


def _compared(work: RecordingWork, items: Items) -> dict[str, Any]:
    form, judged = work.choice(ASKED).get("form", "cooking"), _judged(work, items)
    standing = {}
    for item, verdicts, ruling in judged:
        decided = decide(item, verdicts, ruling)
        standing[item["item"]] = {
            "state": decided.state,
            "answers": decided.answers,
            "candidates": [text for text, _ in candidates(item, verdicts)],
            "valid": [verdict.valid for verdict in verdicts],
        }
    return {
        "standing": standing,
        "to_rule": sum(verdict["state"] == "to_rule" for verdict in standing.values()),
        "agreement": agreement_of_judges(
            (item["type"], [cast(KeptJudgement, verdict.as_kept(form)) for verdict in verdicts])
            for item, verdicts, _ in judged
        ),
    }


def _accepted(work: RecordingWork, items: Items) -> dict[str, Any]:
    form, judged = work.choice(ASKED).get("form", "cooking"), _judged(work, items)
    if remaining := sum(decide(*question).state == "to_rule" for question in judged):
        raise NotNow("{count} answers differ and were not ruled on yet", count=remaining)
    return {"questions": [record_of(*question, form) for question in judged]}


def ask_questions(work: Begun, body: QuestionsToAsk) -> JsonObject:
    """Choose the questions about the video, once, so that everybody judges the same ones."""
    if items := _items(work):
        return {"questions": len(items)}
    if body.questions == []:
        raise BadOperation("the file holds no question with an answer")
    with OwnRecording.open(work.folder, purpose=Purpose.ANNOTATE) as own:
        own.check_filmed()
        own.check_placed()
        choice = questions_of(own, body.questions or ()) | {"form": body.form}
    work.keep(ASKED, choice)
    return {"questions": len(choice["items"])}


def judge_question(work: Begun, body: JudgedQuestion) -> JsonObject:
    """Save the visitor's verdict on a question."""
    item = _items(work).get(body.verdict.item)
    work.round.require_open(work.actor)
    check_verdict(body.verdict, item, len(item["answers"]) if item else 0)
    work.keep(QUESTIONS.edited, body.verdict.model_dump(), body.op_id)
    return {"item": body.verdict.item}


def rule_question(work: Begun, body: JudgedQuestion) -> JsonObject:
    """Save the adjudicator's verdict on a question on which judges differ; a judge may not rule."""
    item = _items(work).get(body.verdict.item)
    work.round.require_ruler(work.actor)
    verdicts = [answers[item["item"]] for answers in work.of_everybody(verdicts_of).values()] if item else []
    check_verdict(body.verdict, item, len(candidates(item, verdicts)) if item else 0)
    work.keep(RULED, body.verdict.model_dump(), body.op_id)
    return {"item": body.verdict.item}


ROUTES = routes(
    "questions",
    "desk/questions.html",
    BEGIN,
    counted="questions",
    items=_items,
    page_state=_page_state,
    compared=_compared,
    require_done=lambda work, items: require_all_answered(len(items.keys() - work.mine(verdicts_of).keys())),
    accepted=_accepted,
    judge=judge_question,
    ask=ask_questions,
    rule=rule_question,
    ask_body=WRITTEN,
)

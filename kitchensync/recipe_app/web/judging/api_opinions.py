"""Opinions about a recording: three people decide, five rate, independently; saved with the recording."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Depends
from pydantic import Field

from kitchensync.dataset.source.data_set import numbered
from kitchensync.dataset.source.numbering import Numbering
from kitchensync.dataset.source.own_members import read_cooked
from kitchensync.dataset.source.own_recording import OwnRecording
from kitchensync.dataset.tables.coherence_examples import all_examples
from kitchensync.operations.errors import BadOperation
from kitchensync.operations.operation_kinds import Strict
from kitchensync.recipe_app.review import opinions
from kitchensync.recipe_app.review.judged_answers import (
    AnswerForm,
    answers_of,
    count_unanswered,
    require_all_answered,
)
from kitchensync.recipe_app.web.door.access import Asking, JsonObject, Tools
from kitchensync.recipe_app.web.judging.review_routes import Judged, RecordingWork, routes, work_on
from kitchensync.storage.consent import Purpose

Items = dict[str, opinions.Item]
Which = Literal["decisions", "ratings"]


class OpinionsToAsk(Strict):
    """Questions to rate; decisions need none."""

    questions: Annotated[list[opinions.QuestionAnswer], Field(max_length=1000)] = Field(default_factory=list)


def _begin(tools: Tools, visitor: Asking, recording: str, kind: Which) -> RecordingWork:
    return work_on(tools, visitor, recording, opinions.OPINIONS[kind].review)


BEGIN = Depends(_begin)
Begun = Annotated[RecordingWork, BEGIN]


def _form(work: RecordingWork) -> AnswerForm:
    return opinions.OPINIONS[work.review.what]


def _items(work: RecordingWork) -> Items:
    return {item["item"]: item for item in work.choice(opinions.ASKED, work.review.what)["items"]}


def _page_state(work: RecordingWork, items: Items) -> dict[str, Any]:
    hidden, mine = () if work.round.is_complete else ("hidden",), work.mine(answers_of)
    return {
        "items": [
            {key: value for key, value in item.items() if key not in hidden} for item in items.values()
        ],
        "questions": _form(work).questions,
        "mine": mine,
        "left": count_unanswered(mine, items, _form(work)),
    }


def _compared(work: RecordingWork, items: Items) -> dict[str, Any]:
    return {"figures": opinions.figures(work.of_everybody(answers_of), [*items.values()], _form(work))}


def _accepted(work: RecordingWork, items: Items) -> dict[str, Any]:
    answers = [*work.of_everybody(answers_of).values()]
    return {"items": [*items.values()], "answers": answers, **_compared(work, items)}


def ask_opinions(work: Begun, body: OpinionsToAsk) -> JsonObject:
    """Choose the items, once for everybody: steps whose success a frame can show, or the submitted questions."""
    if items := _items(work):
        return {"items": len(items)}
    with OwnRecording.open(work.folder, purpose=Purpose.ANNOTATE) as own:
        own.check_filmed()
        own.check_placed()
        numbering = Numbering()
        examples, _ = all_examples([numbered(read_cooked(own, numbering), numbering).annotated])
    chosen = opinions.steps_to_decide(examples)
    if work.review.what == "ratings":
        try:
            chosen = opinions.questions_to_rate(chosen, body.questions)
        except KeyError as error:
            raise BadOperation("a question is about another example than this recording has") from error
    work.keep(opinions.ASKED, {"what": work.review.what, "items": chosen})
    return {"items": len(chosen)}


def think(work: Begun, body: Judged) -> JsonObject:
    """Save one answer."""
    items = _items(work)
    work.round.require_open(work.actor)
    answer = body.answer
    _form(work).check(answer.question, answer.answer, answer.item, items)
    work.keep(work.review.edited, answer.model_dump(), body.op_id)
    return {"item": answer.item}


ROUTES = routes(
    "opinions/{kind}",
    "desk/opinions.html",
    BEGIN,
    counted="items",
    items=_items,
    page_state=_page_state,
    compared=_compared,
    require_done=lambda work, items: require_all_answered(
        count_unanswered(work.mine(answers_of), items, _form(work))
    ),
    accepted=_accepted,
    judge=think,
    ask=ask_opinions,
)

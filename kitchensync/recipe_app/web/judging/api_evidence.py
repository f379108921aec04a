"""Evidence for answers about objects: questions asked, moments marked by two people alone, ruled on, kept."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, Any, cast

from pydantic import Field

from kitchensync.dataset.grounding.object_questions import Question, draw_questions, questions
from kitchensync.dataset.source.data_set import numbered
from kitchensync.dataset.source.numbering import Numbering
from kitchensync.dataset.source.own_members import read_cooked
from kitchensync.dataset.source.own_recording import OwnRecording
from kitchensync.dataset.tables.step_rows import SIZES, windows
from kitchensync.operations.errors import BadOperation, NotNow
from kitchensync.operations.operation_kinds import Strict
from kitchensync.recipe_app.errors import NotAllowed
from kitchensync.recipe_app.review.film_evidence import (
    ASKED,
    EVIDENCE,
    MOST_QUESTIONS,
    RULED,
    TAKE,
    EvidenceEdits,
    EvidenceRuling,
    GroundedQuestion,
    Item,
    Pass,
    RulingState,
    answers_given,
    given_evidence,
    pass_of,
    record_of,
    require_evidence,
    standing,
)
from kitchensync.recipe_app.review.marks import StepMark, marks_of, require_finished
from kitchensync.recipe_app.web.door.access import JsonObject
from kitchensync.recipe_app.web.door.request_bodies import RequestBody
from kitchensync.recipe_app.web.judging.review_routes import RecordingWork, on_recording, routes
from kitchensync.storage.consent import Purpose

BEGIN = on_recording(EVIDENCE)
Begun = Annotated[RecordingWork, BEGIN]
CHECKED = RequestBody(4 << 20, at_once=2)
"""Questions about many recordings, and what a model said of them."""


class EvidenceToAsk(Strict):
    """Questions that `export windows` wrote; none: some are drawn of what can be asked."""

    questions: Annotated[list[GroundedQuestion], Field(max_length=5000)] = Field(default_factory=list)


def _items(work: RecordingWork) -> list[Item]:
    return list(work.asked(ASKED)["items"])


def _told(work: RecordingWork, items: list[Item]) -> dict[str, Any]:
    marks, answers = _of_person(work, work.actor, items)
    return {
        "questions": [{key: value for key, value in item.items() if key != "checks"} for item in items],
        "marks": marks,
        "answers": answers,
        "submitted": work.here.is_submitted(work.actor),
    }


def _of_person(work: RecordingWork, person: str, items: list[Item]) -> tuple[list[StepMark], dict[str, str]]:
    """Return the marks of one person and the answers."""
    marks = marks_of(work.ops, person, given_evidence(work.subject, items), EVIDENCE.edited)
    return marks, answers_given(work.ops, person, items)


def _standing(work: RecordingWork, items: list[Item]) -> list[tuple[Item, list[Pass], RulingState]]:
    people = [_of_person(work, person, items) for person in work.here.people]
    ruled = {op["body"]["item"]: op["body"]["take"] for op in work.ops if op["kind"] == RULED}
    said = [(item, [pass_of(marks, answers, item) for marks, answers in people]) for item in items]
    return [(item, passes, standing(passes, ruled.get(item["item"]))) for item, passes in said]


def _compared(work: RecordingWork, items: list[Item]) -> dict[str, Any]:
    told = [
        {
            "item": item["item"],
            "state": how.state,
            "iou": how.iou,
            "answers": [one.answer for one in passes],
            "spans": [one.spans for one in passes],
        }
        for item, passes, how in _standing(work, items)
    ]
    return {
        "standing": told,
        "to_rule": sum(one["state"] == "to_rule" for one in told),
        "mean_iou": sum(one["iou"] for one in told) / max(len(told), 1),
    }


def _require_done(work: RecordingWork, items: list[Item]) -> None:
    facts, (marks, answers) = work.facts(), _of_person(work, work.actor, items)
    require_finished(marks, facts["frames"])
    require_evidence(marks, answers, items, Fraction(*facts["fps"]))


def _accepted(work: RecordingWork, items: list[Item]) -> dict[str, Any]:
    fps, found = Fraction(*work.facts()["fps"]), _standing(work, items)
    if left := sum(how.state == "to_rule" for _, _, how in found):
        raise NotNow("{count} answers differ and were not ruled on yet", count=left)
    return {"questions": [record_of(item, passes, how, fps) for item, passes, how in found]}


def ask_evidence(work: Begun, body: EvidenceToAsk) -> JsonObject:
    """Ask about objects in the film, once, so that everybody marks the same questions."""
    if items := _items(work):
        return {"questions": len(items)}
    with OwnRecording.open(work.folder, purpose=Purpose.ANNOTATE) as own:
        own.check_filmed()
        own.check_placed()
        name, length_s = own.recording.path.name, own.film_s
        numbering = Numbering()
        one = numbered(read_cooked(own, numbering), numbering).annotated
    rows: Sequence[Question]
    if body.questions:
        rows = [cast(Question, row.model_dump()) for row in body.questions if row.recording == name]
    else:
        clips = (clip for size in SIZES for clip in windows(one, size))
        rows = [row for clip in clips for row in questions(clip, one.activity_name)]
    asked = draw_questions(rows, MOST_QUESTIONS, seed=0)
    if not asked or any(
        row["clip_end"] > length_s + 1 or row["clip_start"] >= row["clip_end"] for row in asked
    ):
        raise BadOperation(
            "nothing can be asked: no two of its steps name one object, or its film is another"
        )
    items = [{"item": row["question_id"], "node": node, **row} for node, row in enumerate(asked)]
    work.keep(ASKED, {"items": items})
    return {"questions": len(asked)}


def mark_evidence(work: Begun, body: EvidenceEdits) -> JsonObject:
    """Keep what one action changed."""
    items, people = _items(work), work.here.people
    work.here.require_open(work.actor)
    if work.actor not in people and len(people) >= EVIDENCE.least:
        raise NotAllowed("this recording was given to others to mark; ask a researcher for it")
    nodes, names = {item["node"] for item in items}, {item["item"] for item in items}
    if not ({one.node for one in body.edits} <= nodes and body.answers.keys() <= names):
        raise BadOperation("this was not asked; load the page again")
    work.keep(EVIDENCE.edited, body.model_dump(include={"edits", "answers"}), body.op_id)
    return {"kept": len(body.edits) + len(body.answers)}


def rule_evidence(work: Begun, body: EvidenceRuling) -> JsonObject:
    """Keep whose pass of a question holds; not by one of those who marked."""
    work.here.require_ruler(work.actor)
    found = {item["item"]: passes for item, passes, _ in _standing(work, _items(work))}
    passes = found.get(body.item)
    if passes is None or (body.take in TAKE and not passes[TAKE.index(body.take)].spans):
        raise BadOperation("this was not asked; load the page again")
    work.keep(RULED, body.model_dump())
    return {"item": body.item}


ROUTES = routes(
    "evidence",
    "desk/evidence.html",
    BEGIN,
    counted="questions",
    items=_items,
    told=_told,
    compared=_compared,
    require_done=_require_done,
    accepted=_accepted,
    judge=mark_evidence,
    ask=ask_evidence,
    rule=rule_evidence,
    ask_body=CHECKED,
    needs_film=True,
)

"""Evidence for answers about objects: questions, moments marked by two people independently, rulings."""

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
    evidence_answers,
    initial_evidence,
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
"""Questions about many recordings, and a model's checks of them."""


class EvidenceToAsk(Strict):
    """Questions that `export windows` wrote; if empty, questions are sampled from the recording."""

    questions: Annotated[list[GroundedQuestion], Field(max_length=5000)] = Field(default_factory=list)


def _items(work: RecordingWork) -> list[Item]:
    return list(work.choice(ASKED)["items"])


def _page_state(work: RecordingWork, items: list[Item]) -> dict[str, Any]:
    marks, answers = _of_person(work, work.actor, items)
    return {
        "questions": [{key: value for key, value in item.items() if key != "checks"} for item in items],
        "marks": marks,
        "answers": answers,
        "submitted": work.round.is_submitted(work.actor),
    }


def _of_person(work: RecordingWork, person: str, items: list[Item]) -> tuple[list[StepMark], dict[str, str]]:
    """Return the marks and the answers of one person."""
    marks = marks_of(work.ops, person, initial_evidence(work.subject, items), EVIDENCE.edited)
    return marks, evidence_answers(work.ops, person, items)


def _standing(work: RecordingWork, items: list[Item]) -> list[tuple[Item, list[Pass], RulingState]]:
    people = [_of_person(work, person, items) for person in work.round.people]
    ruled = {op["body"]["item"]: op["body"]["take"] for op in work.ops if op["kind"] == RULED}
    judged = [(item, [pass_of(marks, answers, item) for marks, answers in people]) for item in items]
    return [(item, passes, standing(passes, ruled.get(item["item"]))) for item, passes in judged]


def _compared(work: RecordingWork, items: list[Item]) -> dict[str, Any]:
    standings = [
        {
            "item": item["item"],
            "state": ruling.state,
            "iou": ruling.iou,
            "answers": [answer_pass.answer for answer_pass in passes],
            "spans": [answer_pass.spans for answer_pass in passes],
        }
        for item, passes, ruling in _standing(work, items)
    ]
    return {
        "standing": standings,
        "to_rule": sum(row["state"] == "to_rule" for row in standings),
        "mean_iou": sum(row["iou"] for row in standings) / max(len(standings), 1),
    }


def _require_done(work: RecordingWork, items: list[Item]) -> None:
    facts, (marks, answers) = work.facts(), _of_person(work, work.actor, items)
    require_finished(marks, facts["frames"])
    require_evidence(marks, answers, items, Fraction(*facts["fps"]))


def _accepted(work: RecordingWork, items: list[Item]) -> dict[str, Any]:
    fps, standings = Fraction(*work.facts()["fps"]), _standing(work, items)
    if remaining := sum(ruling.state == "to_rule" for _, _, ruling in standings):
        raise NotNow("{count} answers differ and were not ruled on yet", count=remaining)
    return {"questions": [record_of(item, passes, ruling, fps) for item, passes, ruling in standings]}


def ask_evidence(work: Begun, body: EvidenceToAsk) -> JsonObject:
    """Choose the questions about objects in the video, once, so that everybody answers the same ones."""
    if items := _items(work):
        return {"questions": len(items)}
    with OwnRecording.open(work.folder, purpose=Purpose.ANNOTATE) as own:
        own.check_filmed()
        own.check_placed()
        name, length_s = own.recording.path.name, own.film_s
        numbering = Numbering()
        member = numbered(read_cooked(own, numbering), numbering).annotated
    rows: Sequence[Question]
    if body.questions:
        rows = [cast(Question, row.model_dump()) for row in body.questions if row.recording == name]
    else:
        clips = (clip for size in SIZES for clip in windows(member, size))
        rows = [row for clip in clips for row in questions(clip, member.activity_name)]
    chosen = draw_questions(rows, MOST_QUESTIONS, seed=0)
    # A clip beyond the end of the video shows that the questions were made from another recording.
    if not chosen or any(
        row["clip_end"] > length_s + 1 or row["clip_start"] >= row["clip_end"] for row in chosen
    ):
        raise BadOperation(
            "nothing can be asked: no two of its steps name one object, or its film is another"
        )
    items = [{"item": row["question_id"], "node": node, **row} for node, row in enumerate(chosen)]
    work.keep(ASKED, {"items": items})
    return {"questions": len(chosen)}


def mark_evidence(work: Begun, body: EvidenceEdits) -> JsonObject:
    """Save the changes of one action."""
    items, people = _items(work), work.round.people
    work.round.require_open(work.actor)
    if work.actor not in people and len(people) >= EVIDENCE.least:
        raise NotAllowed("this recording was given to others to mark; ask a researcher for it")
    nodes, names = {item["node"] for item in items}, {item["item"] for item in items}
    if not ({edit.node for edit in body.edits} <= nodes and body.answers.keys() <= names):
        raise BadOperation("this was not asked; load the page again")
    work.keep(EVIDENCE.edited, body.model_dump(include={"edits", "answers"}), body.op_id)
    return {"kept": len(body.edits) + len(body.answers)}


def rule_evidence(work: Begun, body: EvidenceRuling) -> JsonObject:
    """Save the ruling on whose evidence holds; those who marked may not rule."""
    work.round.require_ruler(work.actor)
    passes_of = {item["item"]: passes for item, passes, _ in _standing(work, _items(work))}
    passes = passes_of.get(body.item)
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
    page_state=_page_state,
    compared=_compared,
    require_done=_require_done,
    accepted=_accepted,
    judge=mark_evidence,
    ask=ask_evidence,
    rule=rule_evidence,
    ask_body=CHECKED,
    needs_film=True,
)

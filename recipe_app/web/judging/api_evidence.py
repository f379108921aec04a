"""Evidence for answers about objects: questions asked, moments marked by two people alone, ruled on, kept."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

from fastapi import Request
from fastapi.responses import Response
from pydantic import Field

from recipe_app.errors import BadOperation, NotAllowed, NotNow
from recipe_app.operations.kinds import Strict
from recipe_app.people.roles import Access
from recipe_app.releases.data_set import numbered
from recipe_app.releases.grounding.object_questions import drawn, questions
from recipe_app.releases.numbering import Numbering
from recipe_app.releases.own import OwnRecording
from recipe_app.releases.own_set import cooked_of
from recipe_app.releases.tables.step_rows import SIZES, windows
from recipe_app.review.film_evidence import (
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
    Standing,
    answers_given,
    given_evidence,
    items_of,
    pass_of,
    record_of,
    require_evidence,
    standing,
)
from recipe_app.review.marks import marks_of, require_finished
from recipe_app.review.rounds import Round, round_of
from recipe_app.store import tables
from recipe_app.web.desk.pages import render
from recipe_app.web.door.access import Asking, Route, Tools
from recipe_app.web.door.request_bodies import RequestBody
from recipe_app.web.judging.api_films import Nobody, film_facts, film_folder
from recipe_app.web.judging.people_asked import Asked, ask_people, keep_judged, who_may
from storage.permission import Purpose

Ops = list[dict[str, Any]]
CHECKED = RequestBody(4 << 20, at_once=2)
"""Questions about many recordings, and what a model said of them."""


class EvidenceToAsk(Strict):
    """Questions that `export windows` wrote; none: some are drawn of what can be asked."""

    questions: Annotated[list[GroundedQuestion], Field(max_length=5000)] = Field(default_factory=list)


def evidence_page(request: Request, tools: Tools, visitor: Asking, recording: str) -> Response:
    """The film of a recording, on which the evidence for answers is marked."""
    tools.records.state(recording)
    row = tools.records.row(tables.recording, recording)
    name = Path(row["folder"] or "").name if row else ""
    said = {"visitor": visitor, "recording": recording, "name": name, "may": who_may(tools, Access.STUDY)}
    return render(request, "desk/evidence.html", **said)


def evidence(tools: Tools, visitor: Asking, recording: str) -> dict[str, Any]:
    """Say what is asked and what one marked; when all have submitted, both passes and how far they overlap."""
    film_folder(tools, recording)
    ops = tools.records.ops(recording)
    items, here = _items(ops), round_of(ops, EVIDENCE)
    mine = marks_of(ops, visitor.actor, given_evidence(recording, items), EVIDENCE.edited)
    said: dict[str, Any] = {
        "questions": [{key: value for key, value in item.items() if key != "checks"} for item in items],
        "marks": mine,
        "answers": answers_given(ops, visitor.actor, items),
        "submitted": visitor.actor in here.people and here.people[visitor.actor].is_submitted,
        **here.told(visitor.actor),
    }
    if not here.is_complete:
        return said
    found = _standing(recording, ops, here)
    told = [
        {
            "item": item["item"],
            "state": how.state,
            "iou": how.iou,
            "answers": [one.answer for one in passes],
            "spans": [one.spans for one in passes],
        }
        for item, passes, how in found
    ]
    return said | {
        "standing": told,
        "to_rule": sum(one["state"] == "to_rule" for one in told),
        "mean_iou": sum(one["iou"] for one in told) / len(told),
    }


def ask_evidence(tools: Tools, visitor: Asking, recording: str, body: EvidenceToAsk) -> dict[str, Any]:
    """Ask about objects in the film, once, so that everybody marks the same questions."""
    if items := _items(tools.records.ops(recording)):
        return {"questions": len(items)}
    with OwnRecording.open(film_folder(tools, recording), purpose=Purpose.ANNOTATE) as own:
        own.check_filmed()
        own.check_placed()
        name, length_s = own.recording.path.name, own.film_s
        numbering = Numbering()
        one = numbered(cooked_of(own, numbering), numbering).annotated
    if body.questions:
        rows = [row.model_dump() for row in body.questions if row.recording == name]
    else:
        clips = (clip for size in SIZES for clip in windows(one, size))
        rows = [row for clip in clips for row in questions(clip, one.activity_name)]
    asked = drawn(rows, MOST_QUESTIONS, seed=0)
    if not asked or any(
        row["clip_end"] > length_s + 1 or row["clip_start"] >= row["clip_end"] for row in asked
    ):
        raise BadOperation(
            "nothing can be asked: no two of its steps name one object, or its film is another"
        )
    tools.records.note(ASKED, recording, {"items": items_of(asked)}, actor=visitor.actor)
    return {"questions": len(asked)}


def mark_evidence(tools: Tools, visitor: Asking, recording: str, body: EvidenceEdits) -> dict[str, Any]:
    """Keep what one action changed."""
    film_folder(tools, recording)
    ops = tools.records.ops(recording)
    here, items = round_of(ops, EVIDENCE), _items(ops)
    here.require_open(visitor.actor)
    if visitor.actor not in here.people and len(here.people) >= EVIDENCE.least:
        raise NotAllowed("this recording was given to others to mark; ask a researcher for it")
    nodes, names = {item["node"] for item in items}, {item["item"] for item in items}
    if not ({one.node for one in body.edits} <= nodes and body.answers.keys() <= names):
        raise BadOperation("this was not asked; load the page again")
    kept = {"edits": [one.model_dump() for one in body.edits], "answers": body.answers}
    tools.records.note(EVIDENCE.edited, recording, kept, actor=visitor.actor, op_id=body.op_id)
    return {"kept": len(body.edits) + len(body.answers)}


def submit_evidence(tools: Tools, visitor: Asking, recording: str, body: Nobody) -> dict[str, Any]:
    """Say that one has marked the evidence of every question."""
    facts, ops = film_facts(tools, recording), tools.records.ops(recording)
    round_of(ops, EVIDENCE).require_open(visitor.actor)
    items = _items(ops)
    mine = marks_of(ops, visitor.actor, given_evidence(recording, items), EVIDENCE.edited)
    require_finished(mine, facts["frames"])
    require_evidence(mine, answers_given(ops, visitor.actor, items), items, Fraction(*facts["fps"]))
    tools.records.note(EVIDENCE.submitted, recording, {}, actor=visitor.actor)
    return {"questions": len(items)}


def assign_evidence(tools: Tools, visitor: Asking, recording: str, body: Asked) -> dict[str, Any]:
    """Ask people to mark the evidence; from then on only they may."""
    tools.records.state(recording)
    if len(body.each) != EVIDENCE.least:
        raise BadOperation("ask {count} people, no more and no less", count=EVIDENCE.least)
    return ask_people(tools, visitor, recording, EVIDENCE, body, Access.STUDY)


def rule_evidence(tools: Tools, visitor: Asking, recording: str, body: EvidenceRuling) -> dict[str, Any]:
    """Keep whose pass of a question holds; not by one of those who marked."""
    ops = tools.records.ops(recording)
    here = round_of(ops, EVIDENCE)
    here.require_ruler(visitor.actor)
    passes = next(
        (said for item, said, _ in _standing(recording, ops, here) if item["item"] == body.item), None
    )
    if passes is None or (body.take in TAKE and not passes[TAKE.index(body.take)].spans):
        raise BadOperation("this was not asked; load the page again")
    tools.records.note(RULED, recording, body.model_dump(), actor=visitor.actor)
    return {"item": body.item}


def accept_evidence(tools: Tools, visitor: Asking, recording: str, body: Nobody) -> dict[str, Any]:
    """Keep the questions with their evidence as a version in the recording's folder."""
    facts, ops = film_facts(tools, recording), tools.records.ops(recording)
    here = round_of(ops, EVIDENCE)
    here.require_complete()
    found = _standing(recording, ops, here)
    if left := sum(how.state == "to_rule" for _, _, how in found):
        raise NotNow("{count} answers differ and were not ruled on yet", count=left)
    rows = [record_of(item, passes, how, Fraction(*facts["fps"])) for item, passes, how in found]
    version = keep_judged(tools, visitor, recording, "evidence", {"questions": rows})
    return {"version": version, "questions": len(rows)}


def _items(ops: Ops) -> list[Item]:
    return next((op["body"]["items"] for op in reversed(ops) if op["kind"] == ASKED), [])


def _standing(recording: str, ops: Ops, here: Round) -> list[tuple[Item, list[Pass], Standing]]:
    items = _items(ops)
    given = given_evidence(recording, items)
    people = [
        (marks_of(ops, one, given, EVIDENCE.edited), answers_given(ops, one, items)) for one in here.people
    ]
    ruled = {op["body"]["item"]: op["body"]["take"] for op in ops if op["kind"] == RULED}
    passes = [[pass_of(marks, answers, item) for marks, answers in people] for item in items]
    return [
        (item, said, standing(said, ruled.get(item["item"])))
        for item, said in zip(items, passes, strict=True)
    ]


MARKED = "/api/v1/desk/recordings/{recording}/evidence"
ROUTES = [
    Route("/desk/recordings/{recording}/evidence", evidence_page, Access.STUDY, page=True),
    Route(MARKED, evidence, Access.STUDY),
    Route(MARKED, mark_evidence, Access.STUDY, "POST"),
    Route(f"{MARKED}/ask", ask_evidence, Access.STUDY, "POST", body=CHECKED),
    Route(f"{MARKED}/submit", submit_evidence, Access.STUDY, "POST"),
    Route(f"{MARKED}/assign", assign_evidence, Access.STUDY, "POST"),
    Route(f"{MARKED}/rule", rule_evidence, Access.STUDY, "POST"),
    Route(f"{MARKED}/accept", accept_evidence, Access.STUDY, "POST"),
]

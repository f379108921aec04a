"""Opinions about a recording: three people decide, five rate, each alone; kept with the recording."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Request
from fastapi.responses import Response
from pydantic import Field

from recipe_app.errors import BadOperation
from recipe_app.operations.kinds import OpId, Strict
from recipe_app.people.roles import Access
from recipe_app.releases.data_set import numbered
from recipe_app.releases.numbering import Numbering
from recipe_app.releases.own import OwnRecording
from recipe_app.releases.own_set import cooked_of
from recipe_app.releases.tables.coherence_examples import all_examples
from recipe_app.review.judged_answers import (
    AnswerForm,
    Answers,
    GivenAnswer,
    answers_of,
    open_of,
    require_all,
)
from recipe_app.review.opinions import (
    ASKED,
    OPINIONS,
    AskedBack,
    Item,
    figures,
    questions_to_rate,
    steps_to_decide,
)
from recipe_app.review.rounds import Round, round_of
from recipe_app.web.desk.pages import render
from recipe_app.web.door.access import Asking, Route, Tools
from recipe_app.web.judging.api_films import Nobody, film_folder
from recipe_app.web.judging.people_asked import Asked, ask_people, keep_judged, who_may
from storage.permission import Purpose

Kind = Literal["decisions", "ratings"]
Ops = list[dict[str, Any]]


class Thought(Strict):
    """One answer."""

    op_id: OpId
    answer: GivenAnswer


class OpinionsToAsk(Strict):
    """Questions that are to be rated; decisions need none."""

    questions: Annotated[list[AskedBack], Field(max_length=1000)] = Field(default_factory=list)


def opinions_page(request: Request, tools: Tools, visitor: Asking, recording: str, kind: Kind) -> Response:
    """Steps of a recording to decide on, or questions about them to rate."""
    tools.records.state(recording)
    may = who_may(tools, Access.STUDY)
    said = {"visitor": visitor, "recording": recording, "kind": kind, "may": may}
    return render(request, "desk/opinions.html", **said)


def opinions(tools: Tools, visitor: Asking, recording: str, kind: Kind) -> dict[str, Any]:
    """Say what is asked and what one answered; when all have submitted, what all answered and what is true."""
    film_folder(tools, recording)
    ops, form = tools.records.ops(recording), OPINIONS[kind]
    items, here = _items(ops, kind), round_of(ops, form.review)
    mine = answers_of(ops, form.review.edited, visitor.actor)
    said = {
        "items": items if here.is_complete else [_shown(item) for item in items],
        "questions": form.questions,
        "mine": mine,
        "left": open_of(mine, [item["item"] for item in items], form),
        **here.told(visitor.actor),
    }
    if here.is_complete:
        said["figures"] = figures(_people(ops, here, form), items, form)
    return said


def ask_opinions(
    tools: Tools, visitor: Asking, recording: str, kind: Kind, body: OpinionsToAsk
) -> dict[str, Any]:
    """Ask about every step whose success a picture can show, or the questions given; once, the same of everybody."""
    if items := _items(tools.records.ops(recording), kind):
        return {"items": len(items)}
    with OwnRecording.open(film_folder(tools, recording), purpose=Purpose.ANNOTATE) as own:
        own.check_filmed()
        own.check_placed()
        numbering = Numbering()
        examples, _ = all_examples([numbered(cooked_of(own, numbering), numbering).annotated])
    items = steps_to_decide(examples)
    if kind == "ratings":
        try:
            items = questions_to_rate(items, body.questions)
        except KeyError as error:
            raise BadOperation("a question is about another example than this recording has") from error
    tools.records.note(ASKED, recording, {"what": kind, "items": items}, actor=visitor.actor)
    return {"items": len(items)}


def think(tools: Tools, visitor: Asking, recording: str, kind: Kind, body: Thought) -> dict[str, Any]:
    """Keep one answer."""
    film_folder(tools, recording)
    ops, form, said = tools.records.ops(recording), OPINIONS[kind], body.answer
    round_of(ops, form.review).require_open(visitor.actor)
    form.check(said.question, said.answer, said.item, [item["item"] for item in _items(ops, kind)])
    tools.records.note(
        form.review.edited, recording, said.model_dump(), actor=visitor.actor, op_id=body.op_id
    )
    return {"item": said.item}


def submit_opinions(
    tools: Tools, visitor: Asking, recording: str, kind: Kind, body: Nobody
) -> dict[str, Any]:
    """Say that one has answered everything."""
    ops, form = tools.records.ops(recording), OPINIONS[kind]
    round_of(ops, form.review).require_open(visitor.actor)
    items = [item["item"] for item in _items(ops, kind)]
    require_all(answers_of(ops, form.review.edited, visitor.actor), items, form)
    tools.records.note(form.review.submitted, recording, {}, actor=visitor.actor)
    return {"items": len(items)}


def assign_opinions(tools: Tools, visitor: Asking, recording: str, kind: Kind, body: Asked) -> dict[str, Any]:
    """Ask people to answer; from then on only they may."""
    tools.records.state(recording)
    review = OPINIONS[kind].review
    if len(body.each) < review.least:
        raise BadOperation("ask {count} people or more", count=review.least)
    return ask_people(tools, visitor, recording, review, body, Access.STUDY)


def accept_opinions(
    tools: Tools, visitor: Asking, recording: str, kind: Kind, body: Nobody
) -> dict[str, Any]:
    """Keep what everybody answered, and the figures, as a version in the recording's folder."""
    ops, form = tools.records.ops(recording), OPINIONS[kind]
    items, here = _items(ops, kind), round_of(ops, form.review)
    here.require_complete()
    people = _people(ops, here, form)
    content = {
        "items": items,
        "answers": list(people.values()),
        "figures": figures(people, items, form),
    }
    return {"version": keep_judged(tools, visitor, recording, kind, content), "items": len(items)}


def _shown(item: Item) -> Item:
    return {key: value for key, value in item.items() if key != "hidden"}


def _items(ops: Ops, kind: str) -> list[Item]:
    asked = (op["body"] for op in reversed(ops) if op["kind"] == ASKED)
    return next((body["items"] for body in asked if body["what"] == kind), [])


def _people(ops: Ops, here: Round, form: AnswerForm) -> dict[str, Answers]:
    return {person: answers_of(ops, form.review.edited, person) for person in here.people}


OPINION = "/api/v1/desk/recordings/{recording}/opinions/{kind}"
ROUTES = [
    Route("/desk/recordings/{recording}/opinions/{kind}", opinions_page, Access.STUDY, page=True),
    Route(OPINION, opinions, Access.STUDY),
    Route(OPINION, think, Access.STUDY, "POST"),
    Route(f"{OPINION}/ask", ask_opinions, Access.STUDY, "POST"),
    Route(f"{OPINION}/submit", submit_opinions, Access.STUDY, "POST"),
    Route(f"{OPINION}/assign", assign_opinions, Access.STUDY, "POST"),
    Route(f"{OPINION}/accept", accept_opinions, Access.STUDY, "POST"),
]

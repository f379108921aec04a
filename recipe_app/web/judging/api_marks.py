"""Steps that people mark on films, each for themselves; what they agree on, and who rules on the rest."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Any

from fastapi import Request
from fastapi.responses import Response
from pydantic import Field

from recipe_app.annotation.accept import accept
from recipe_app.cooking.collaborators import Collaborators
from recipe_app.errors import BadOperation, NotFound, NotNow
from recipe_app.narration.narrations import drawn
from recipe_app.operations.kinds import OpId, Strict
from recipe_app.people.roles import Access
from recipe_app.releases.own import OwnRecording
from recipe_app.review.mark_versions import keep_marks
from recipe_app.review.marks import (
    ACCEPTED,
    STEPS,
    Mark,
    StepEdit,
    annotation_of,
    given_marks,
    marks_of,
    regions_of,
    require_finished,
    touched_marks,
)
from recipe_app.review.rounds import Round, round_of
from recipe_app.review.rulings import RULED, merged, pairs_of_people, pull_s
from recipe_app.store import tables
from recipe_app.web.desk.pages import render
from recipe_app.web.door.access import Asking, Route, Tools
from recipe_app.web.judging.api_films import LOOKED_BACK, Nobody, film_facts, film_folder
from recipe_app.web.judging.people_asked import Asked, ask_people, who_may
from storage.permission import Purpose


class Edits(Strict):
    """What one action changed."""

    op_id: OpId
    edits: Annotated[list[StepEdit], Field(min_length=1, max_length=20)]


def steps_page(request: Request, tools: Tools, visitor: Asking, recording: str) -> Response:
    """The steps of a recording on its film; errors only for who does not mark them for others to compare."""
    tools.records.state(recording)
    asked = round_of(tools.records.ops(recording), STEPS).is_asked_still(visitor.actor)
    errors = visitor.may(Access.STUDY) and "annotator" not in visitor.roles and not asked
    return render(
        request, "desk/steps.html", visitor=visitor, recording=recording, work="marks", errors=errors
    )


def ruling_page(request: Request, tools: Tools, visitor: Asking, recording: str) -> Response:
    """The steps of a recording on its film, where people did not agree about them."""
    tools.records.state(recording)
    return render(
        request, "desk/steps.html", visitor=visitor, recording=recording, work="ruling", errors=True
    )


def to_review(request: Request, tools: Tools, visitor: Asking) -> Response:
    """The recordings whose steps can be marked, newest first; nothing of errors is told."""
    table = tables.recording
    rows = tools.records.rows(table, table.c.folder.is_not(None), order=table.c.created_utc_ns.desc())
    rounds = {
        row["id"]: round_of(tools.records.ops(row["id"]), STEPS)
        for row in rows
        if row["phase"] in LOOKED_BACK
    }
    mine = {
        name: one.people[visitor.actor].is_submitted
        for name, one in rounds.items()
        if visitor.actor in one.people
    }
    found = [
        row
        for row in rows
        if row["id"] in mine or (row["id"] in rounds and not rounds[row["id"]].is_assigned)
    ]
    told = drawn({row["id"]: row["recipe"] for row in rows if row["phase"] in LOOKED_BACK}, seed=0)
    return render(request, "desk/review.html", visitor=visitor, recordings=found, mine=mine, drawn=told)


def round_page(request: Request, tools: Tools, visitor: Asking, recording: str) -> Response:
    """Who marks a recording, how far they are, and how well they agree when all are done."""
    tools.records.state(recording)
    names = {row["id"]: row for row in tools.records.rows(tables.person, order=tables.person.c.pseudonym)}
    may = who_may(tools, Access.ANNOTATE)
    try:
        said = review(tools, recording)
    except (NotFound, NotNow):
        said = _people(tools, recording)  # its film is not made yet
    for one in said["people"]:
        one["name"] = names[one["person"]]["pseudonym"] if one["person"] in names else one["person"]
    return render(
        request, "desk/round.html", visitor=visitor, recording=recording, review=said, may=may, names=names
    )


def review(tools: Tools, recording: str) -> dict[str, Any]:
    """Say who marks a recording and how far they are; when all have submitted, how well they agree."""
    facts, ops = film_facts(tools, recording), tools.records.ops(recording)
    here, said = round_of(ops, STEPS), _people(tools, recording)
    touched, fps = touched_marks(recording, facts["touches"], ops), Fraction(*facts["fps"])
    given = given_marks(recording, touched)
    marked = {person: marks_of(ops, person, given) for person in here.people}
    for one in said["people"]:
        one["boundaries_left"] = _open(marked[one["person"]])
        one["work_s_per_film_s"] = round(one["work_s"] / float(facts["frames"] / fps), 3)
    if not here.is_complete:
        return said
    labels = {step["node"]: step["label"] for step in facts["steps"]}
    return said | {
        "agreement": pairs_of_people(marked, labels, fps, facts["frames"]),
        "pull": pull_s(marked, touched, given, fps),
        "to_rule": _open(merged(recording, marked, fps)),
    }


def _people(tools: Collaborators, recording: str) -> dict[str, Any]:
    """Say who marks a recording: what can be said without its film."""
    here = round_of(tools.records.ops(recording), STEPS)
    people = [
        {"person": person, "submitted": work.is_submitted, "work_s": round(work.work_ns / 1e9, 1)}
        for person, work in here.people.items()
    ]
    return {
        "recording": recording,
        "people": people,
        "assigned": here.is_assigned,
        "complete": here.is_complete,
    }


def assign(tools: Tools, visitor: Asking, recording: str, body: Asked) -> dict[str, Any]:
    """Ask people to mark a recording; from then on only they may."""
    tools.records.state(recording)
    return ask_people(tools, visitor, recording, STEPS, body, Access.ANNOTATE)


def marks(tools: Tools, visitor: Asking, recording: str) -> dict[str, Any]:
    """Say what somebody marked so far; nobody sees the marks of others here."""
    facts, ops = film_facts(tools, recording), tools.records.ops(recording)
    here = round_of(ops, STEPS)
    here.require_member(visitor.actor)
    mine = marks_of(ops, visitor.actor, _given(recording, facts, ops))
    return {"marks": mine, "submitted": _is_submitted(here, visitor.actor), "complete": here.is_complete}


def marks_of_person(tools: Tools, visitor: Asking, recording: str, person: str) -> dict[str, Any]:
    """Say what somebody else marked, when everybody of the round has submitted."""
    facts, ops = film_facts(tools, recording), tools.records.ops(recording)
    here = round_of(ops, STEPS)
    here.require_complete()
    if "annotator" in visitor.roles:
        here.require_member(visitor.actor)
    if person not in here.people:
        raise NotFound("nobody {name!r} marked this recording", name=person[:40])
    return {"marks": marks_of(ops, person, _given(recording, facts, ops))}


def edit(tools: Tools, visitor: Asking, recording: str, body: Edits) -> dict[str, Any]:
    """Keep what one action changed."""
    facts = film_facts(tools, recording)
    round_of(tools.records.ops(recording), STEPS).require_open(visitor.actor)
    return _keep(tools, visitor.actor, recording, body, STEPS.edited, facts)


def submit(tools: Tools, visitor: Asking, recording: str, body: Nobody) -> dict[str, Any]:
    """Take what somebody marked as a version of the recording's steps."""
    facts, ops = film_facts(tools, recording), tools.records.ops(recording)
    round_of(ops, STEPS).require_open(visitor.actor)
    mine = marks_of(ops, visitor.actor, _given(recording, facts, ops))
    version = _version(tools, visitor, recording, mine, annotation_of(visitor.actor))
    tools.records.note(STEPS.submitted, recording, {"version": version}, actor=visitor.actor)
    return {"version": version, "annotation": annotation_of(visitor.actor)}


def accept_marks(tools: Tools, visitor: Asking, recording: str, body: Nobody) -> dict[str, Any]:
    """Make what one submitted the step times of the recording, which releases use."""
    return _accept(tools, visitor.actor, recording, annotation_of(visitor.actor))


def ruling(tools: Tools, visitor: Asking, recording: str) -> dict[str, Any]:
    """Say what people agree on, and what each gave where they do not; with what was ruled so far."""
    given = _given_to_rule(tools, recording)
    mine = marks_of(tools.records.ops(recording), visitor.actor, _without_choices(given), RULED)
    return {"marks": mine, "submitted": False, "choices": {mark["mark"]: mark["choices"] for mark in given}}


def rule(tools: Tools, visitor: Asking, recording: str, body: Edits) -> dict[str, Any]:
    """Keep what one action of who rules changed."""
    round_of(tools.records.ops(recording), STEPS).require_ruler(visitor.actor)
    return _keep(tools, visitor.actor, recording, body, RULED, film_facts(tools, recording))


def submit_ruling(tools: Tools, visitor: Asking, recording: str, body: Nobody) -> dict[str, Any]:
    """Make what was ruled a version of the steps, and the recording's step times."""
    round_of(tools.records.ops(recording), STEPS).require_ruler(visitor.actor)
    given = _without_choices(_given_to_rule(tools, recording))
    mine = marks_of(tools.records.ops(recording), visitor.actor, given, RULED)
    annotation = annotation_of(f"{visitor.actor} {RULED}")
    _version(tools, visitor, recording, mine, annotation)
    return _accept(tools, visitor.actor, recording, annotation)


def _given_to_rule(tools: Collaborators, recording: str) -> list[Mark]:
    """Return the marks of all people, brought together. Raises NotNow before all have submitted."""
    facts, ops = film_facts(tools, recording), tools.records.ops(recording)
    here = round_of(ops, STEPS)
    here.require_complete()
    given = _given(recording, facts, ops)
    marked = {person: marks_of(ops, person, given) for person in here.people}
    return merged(recording, marked, Fraction(*facts["fps"]))


def _given(recording: str, facts: dict[str, Any], ops: list[dict[str, Any]]) -> list[Mark]:
    return given_marks(recording, touched_marks(recording, facts["touches"], ops))


def _without_choices(marks: list[Mark]) -> list[Mark]:
    return [{key: value for key, value in mark.items() if key != "choices"} for mark in marks]


def _open(marks: list[Mark]) -> int:
    return sum(2 - len({*mark["checked"]}) for mark in marks if not (mark["removed"] or mark["missing"]))


def _is_submitted(here: Round, actor: str) -> bool:
    return actor in here.people and here.people[actor].is_submitted


def _keep(
    tools: Collaborators, actor: str, recording: str, body: Edits, kind: str, facts: dict[str, Any]
) -> dict[str, Any]:
    nodes = {step["node"] for step in facts["steps"]}
    for one in body.edits:
        if one.node not in nodes:
            raise BadOperation("step {node} is not in this recording", node=str(one.node))
    kept = {"edits": [one.model_dump() for one in body.edits]}
    tools.records.note(kind, recording, kept, actor=actor, op_id=body.op_id)
    tools.intake.file()
    return {"kept": len(body.edits)}


def _version(tools: Collaborators, visitor: Any, recording: str, marks: list[Mark], annotation: int) -> int:
    """Keep finished marks as a version of the recording's steps. Raises NotNow."""
    facts = film_facts(tools, recording)
    require_finished(marks, facts["frames"])
    labels = {step["node"]: step["label"] for step in facts["steps"]}
    by = visitor.person["pseudonym"] if visitor.person else ""
    folder = film_folder(tools, recording)
    return keep_marks(folder, facts, annotation, by, regions_of(marks, labels), marks)


def _accept(tools: Collaborators, actor: str, recording: str, annotation: int) -> dict[str, Any]:
    films = frozenset([film_facts(tools, recording)["sha256"]])
    with OwnRecording.open(film_folder(tools, recording), purpose=Purpose.ANNOTATE) as own:
        made = accept(own, annotation, films)
    tools.records.note(ACCEPTED, recording, {"version": made["version"]}, actor=actor)
    return {"version": made["version"], "steps": len(made["steps"])}


PAGE, RECORDING = "/desk/recordings/{recording}", "/api/v1/desk/recordings/{recording}"
ROUTES = [
    Route("/desk/review", to_review, Access.ANNOTATE, page=True),
    Route(f"{PAGE}/steps", steps_page, Access.ANNOTATE, page=True),
    Route(f"{PAGE}/round", round_page, Access.STUDY, page=True),
    Route(f"{PAGE}/ruling", ruling_page, Access.STUDY, page=True),
    Route(f"{RECORDING}/marks", marks, Access.ANNOTATE),
    Route(f"{RECORDING}/marks", edit, Access.ANNOTATE, "POST"),
    Route(f"{RECORDING}/marks/of/{{person}}", marks_of_person, Access.ANNOTATE),
    Route(f"{RECORDING}/marks/submit", submit, Access.ANNOTATE, "POST"),
    Route(f"{RECORDING}/marks/accept", accept_marks, Access.STUDY, "POST"),
    Route(f"{RECORDING}/round", review, Access.STUDY),
    Route(f"{RECORDING}/round", assign, Access.STUDY, "POST"),
    Route(f"{RECORDING}/ruling", ruling, Access.STUDY),
    Route(f"{RECORDING}/ruling", rule, Access.STUDY, "POST"),
    Route(f"{RECORDING}/ruling/submit", submit_ruling, Access.STUDY, "POST"),
]

"""Steps that people mark on films, each for themselves; what they agree on, and who rules on the rest."""

from __future__ import annotations

import time
from fractions import Fraction
from typing import Annotated, Any, cast

from fastapi import Request
from fastapi.responses import Response
from pydantic import Field

from kitchensync.dataset.annotation.accept import accept
from kitchensync.dataset.source.own_recording import OwnRecording
from kitchensync.operations.errors import BadOperation, NotNow
from kitchensync.operations.operation_kinds import OpId, Strict
from kitchensync.recipe_app.people.roles import Access
from kitchensync.recipe_app.review.marks import (
    ACCEPTED,
    STEPS,
    StepEdit,
    StepMark,
    annotation_of,
    given_marks,
    marks_of,
    regions_of,
    require_finished,
    touched_marks,
)
from kitchensync.recipe_app.review.rulings import RULED, merged, pairs_of_people, pull_s
from kitchensync.recipe_app.store import tables
from kitchensync.recipe_app.web.bodies import EmptyBody
from kitchensync.recipe_app.web.desk.pages import render
from kitchensync.recipe_app.web.door.access import JsonObject, Route
from kitchensync.recipe_app.web.judging import review_routes
from kitchensync.storage.consent import Purpose
from kitchensync.storage.recording_files.annotation_folder import add_version
from kitchensync.task_graphs.errors import NotFound

Begun = Annotated[review_routes.RecordingWork, review_routes.on_recording(STEPS)]


class Edits(Strict):
    """What one action changed."""

    op_id: OpId
    edits: Annotated[list[StepEdit], Field(min_length=1, max_length=20)]


def steps_page(request: Request, work: Begun) -> Response:
    """The steps of a recording on its film; errors only for who does not mark them for others to compare."""
    asked = work.here.is_asked_still(work.actor)
    errors = work.visitor.may(Access.STUDY) and "annotator" not in work.visitor.roles and not asked
    said = {"visitor": work.visitor, "recording": work.subject, "work": "marks", "errors": errors}
    return render(request, "desk/steps.html", **said)


def ruling_page(request: Request, work: Begun) -> Response:
    """The steps of a recording on its film, where people did not agree about them."""
    said = {"visitor": work.visitor, "recording": work.subject, "work": "ruling", "errors": True}
    return render(request, "desk/steps.html", **said)


def round_page(request: Request, work: Begun) -> Response:
    """Who marks a recording, how far they are, and how well they agree when all are done."""
    people = work.tools.records.rows(tables.person, order=tables.person.c.pseudonym)
    names, may = {row["id"]: row for row in people}, review_routes.who_may(work.tools, Access.ANNOTATE)
    try:
        told = review(work)
    except NotNow:
        told = _people(work)  # its film is not made yet
    for one in told["people"]:
        one["name"] = names[one["person"]]["pseudonym"] if one["person"] in names else one["person"]
    said = {"visitor": work.visitor, "recording": work.subject, "review": told, "may": may, "names": names}
    return render(request, "desk/round.html", **said)


def review(work: Begun) -> dict[str, Any]:
    """Report who marks a recording and how far they are; when all have submitted, how well they agree."""
    facts, said = work.facts(), _people(work)
    touched, fps = touched_marks(work.subject, facts["touches"], work.ops), Fraction(*facts["fps"])
    given = given_marks(work.subject, touched)
    marked = {person: marks_of(work.ops, person, given) for person in work.here.people}
    for one in said["people"]:
        one["boundaries_left"] = _open(marked[one["person"]])
        one["work_s_per_film_s"] = round(one["work_s"] / float(facts["frames"] / fps), 3)
    if not work.here.is_complete:
        return said
    labels = {step["node"]: step["label"] for step in facts["steps"]}
    return said | {
        "agreement": pairs_of_people(marked, labels, fps, facts["frames"]),
        "pull": pull_s(marked, touched, given, fps),
        "to_rule": _open(merged(work.subject, marked, fps)),
    }


def _people(work: review_routes.RecordingWork) -> dict[str, Any]:
    """Report who marks a recording: what can be said without its film."""
    people = [
        {"person": person, "submitted": done.is_submitted, "work_s": round(done.work_ns / 1e9, 1)}
        for person, done in work.here.people.items()
    ]
    return {
        "recording": work.subject,
        "people": people,
        "assigned": work.here.is_assigned,
        "complete": work.here.is_complete,
    }


def assign(work: Begun, body: review_routes.Asked) -> JsonObject:
    """Ask people to mark a recording; from then on only they may."""
    return review_routes.ask_people(work, body, Access.ANNOTATE)


def marks(work: Begun) -> JsonObject:
    """Report what somebody marked so far; nobody sees the marks of others here."""
    given = _given(work)
    work.here.require_member(work.actor)
    submitted = work.here.is_submitted(work.actor)
    mine = marks_of(work.ops, work.actor, given)
    return {"marks": mine, "submitted": submitted, "complete": work.here.is_complete}


def marks_of_person(work: Begun, person: str) -> JsonObject:
    """Report what somebody else marked, when everybody of the round has submitted."""
    given = _given(work)
    work.here.require_complete()
    if "annotator" in work.visitor.roles:
        work.here.require_member(work.actor)
    if person not in work.here.people:
        raise NotFound("nobody {name!r} marked this recording", name=person[:40])
    return {"marks": marks_of(work.ops, person, given)}


def edit(work: Begun, body: Edits) -> JsonObject:
    """Keep what one action changed."""
    facts = work.facts()
    work.here.require_open(work.actor)
    return _keep(work, body, STEPS.edited, facts)


def submit(work: Begun, body: EmptyBody) -> JsonObject:
    """Take what somebody marked as a version of the recording's steps."""
    given = _given(work)
    work.here.require_open(work.actor)
    version = _version(work, marks_of(work.ops, work.actor, given), annotation_of(work.actor))
    work.keep(STEPS.submitted, {"version": version})
    return {"version": version, "annotation": annotation_of(work.actor)}


def accept_marks(work: Begun, body: EmptyBody) -> JsonObject:
    """Make what one submitted the step times of the recording, which releases use."""
    return _accept(work, annotation_of(work.actor))


def ruling(work: Begun) -> JsonObject:
    """Report what people agree on, and what each gave where they do not; with what was ruled so far."""
    given, mine = _ruled(work)
    return {"marks": mine, "submitted": False, "choices": {mark["mark"]: mark["choices"] for mark in given}}


def rule(work: Begun, body: Edits) -> JsonObject:
    """Keep what one action of who rules changed."""
    work.here.require_ruler(work.actor)
    return _keep(work, body, RULED, work.facts())


def submit_ruling(work: Begun, body: EmptyBody) -> JsonObject:
    """Make what was ruled a version of the steps, and the recording's step times."""
    work.here.require_ruler(work.actor)
    _, mine = _ruled(work)
    annotation = annotation_of(f"{work.actor} {RULED}")
    _version(work, mine, annotation)
    return _accept(work, annotation)


def _ruled(work: review_routes.RecordingWork) -> tuple[list[StepMark], list[StepMark]]:
    """Return the marks of all people, brought together, and as ruled so far. Raises NotNow before all submitted."""
    given = _given(work)
    work.here.require_complete()
    marked = {person: marks_of(work.ops, person, given) for person in work.here.people}
    brought = merged(work.subject, marked, Fraction(*work.facts()["fps"]))
    bare = [{key: value for key, value in mark.items() if key != "choices"} for mark in brought]
    return brought, marks_of(work.ops, work.actor, cast("list[StepMark]", bare), RULED)


def _given(work: review_routes.RecordingWork) -> list[StepMark]:
    return given_marks(work.subject, touched_marks(work.subject, work.facts()["touches"], work.ops))


def _open(marks: list[StepMark]) -> int:
    return sum(2 - len({*mark["checked"]}) for mark in marks if not (mark["removed"] or mark["missing"]))


def _keep(work: review_routes.RecordingWork, body: Edits, kind: str, facts: dict[str, Any]) -> dict[str, Any]:
    nodes = {step["node"] for step in facts["steps"]}
    for one in body.edits:
        if one.node not in nodes:
            raise BadOperation("step {node} is not in this recording", node=str(one.node))
    work.keep(kind, {"edits": [one.model_dump() for one in body.edits]}, body.op_id)
    work.tools.intake.file()
    return {"kept": len(body.edits)}


def _version(work: review_routes.RecordingWork, marks: list[StepMark], annotation: int) -> int:
    """Keep finished marks as a version of the recording's steps; the same again makes no new one. Raises NotNow."""
    facts = work.facts()
    require_finished(marks, facts["frames"])
    labels = {step["node"]: step["label"] for step in facts["steps"]}
    fps = "/".join(map(str, facts["fps"])) if facts["fps"][1] != 1 else str(facts["fps"][0])
    content = {
        "source": "reviewer",
        "task": None,
        "annotation": annotation,
        "author": work.visitor.pseudonym,
        "was_cancelled": False,
        "kept_utc_ns": time.time_ns(),
        "film": {"fps": fps, "frames": facts["frames"], "proxy_sha256": facts["sha256"]},
        "raw": {"result": regions_of(marks, labels), "marks": marks},
    }
    return add_version(work.folder, content)[0]


def _accept(work: review_routes.RecordingWork, annotation: int) -> dict[str, Any]:
    films = frozenset([work.facts()["sha256"]])
    with OwnRecording.open(work.folder, purpose=Purpose.ANNOTATE) as own:
        made = accept(own, annotation, films)
    work.keep(ACCEPTED, {"version": made["version"]})
    return {"version": made["version"], "steps": len(made["steps"])}


PAGE, RECORDING = "/desk/recordings/{recording}", "/api/v1/desk/recordings/{recording}"
ROUTES = [
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

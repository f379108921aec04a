"""Steps that people mark on videos independently; what they agree on, and rulings on the rest."""

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
    initial_marks,
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
    """The changes of one action."""

    op_id: OpId
    edits: Annotated[list[StepEdit], Field(min_length=1, max_length=20)]


def steps_page(request: Request, work: Begun) -> Response:
    """Show the steps of a recording on its video; no errors for annotators, whose marks must stay independent."""
    is_marking = work.round.is_still_working(work.actor)
    errors = work.visitor.may(Access.STUDY) and "annotator" not in work.visitor.roles and not is_marking
    fields = {"visitor": work.visitor, "recording": work.subject, "work": "marks", "errors": errors}
    return render(request, "desk/steps.html", **fields)


def ruling_page(request: Request, work: Begun) -> Response:
    """Show the steps of a recording on its video, to rule where people differ."""
    fields = {"visitor": work.visitor, "recording": work.subject, "work": "ruling", "errors": True}
    return render(request, "desk/steps.html", **fields)


def round_page(request: Request, work: Begun) -> Response:
    """Show who marks a recording, their progress and, when all have submitted, their agreement."""
    people = work.tools.records.rows(tables.person, order=tables.person.c.pseudonym)
    names, may = {row["id"]: row for row in people}, review_routes.who_may(work.tools, Access.ANNOTATE)
    try:
        report = review(work)
    except NotNow:
        report = _people(work)  # the small video is not made yet
    for row in report["people"]:
        row["name"] = names[row["person"]]["pseudonym"] if row["person"] in names else row["person"]
    fields = {
        "visitor": work.visitor,
        "recording": work.subject,
        "review": report,
        "may": may,
        "names": names,
    }
    return render(request, "desk/round.html", **fields)


def review(work: Begun) -> dict[str, Any]:
    """Report who marks a recording and their progress; when all have submitted, their agreement."""
    facts, report = work.facts(), _people(work)
    touched, fps = touched_marks(work.subject, facts["touches"], work.ops), Fraction(*facts["fps"])
    initial = initial_marks(work.subject, touched)
    marked = {person: marks_of(work.ops, person, initial) for person in work.round.people}
    for row in report["people"]:
        row["boundaries_left"] = _open(marked[row["person"]])
        row["work_s_per_film_s"] = round(row["work_s"] / float(facts["frames"] / fps), 3)
    if not work.round.is_complete:
        return report
    labels = {step["node"]: step["label"] for step in facts["steps"]}
    return report | {
        "agreement": pairs_of_people(marked, labels, fps, facts["frames"]),
        "pull": pull_s(marked, touched, initial, fps),
        "to_rule": _open(merged(work.subject, marked, fps)),
    }


def _people(work: review_routes.RecordingWork) -> dict[str, Any]:
    """Report who marks a recording, without the figures that need its video."""
    people = [
        {"person": person, "submitted": done.is_submitted, "work_s": round(done.work_ns / 1e9, 1)}
        for person, done in work.round.people.items()
    ]
    return {
        "recording": work.subject,
        "people": people,
        "assigned": work.round.is_assigned,
        "complete": work.round.is_complete,
    }


def assign(work: Begun, body: review_routes.Asked) -> JsonObject:
    """Assign people to mark a recording; from then on only they may."""
    return review_routes.ask_people(work, body, Access.ANNOTATE)


def marks(work: Begun) -> JsonObject:
    """Report the visitor's own marks so far."""
    initial = _initial_marks(work)
    work.round.require_member(work.actor)
    submitted = work.round.is_submitted(work.actor)
    mine = marks_of(work.ops, work.actor, initial)
    return {"marks": mine, "submitted": submitted, "complete": work.round.is_complete}


def marks_of_person(work: Begun, person: str) -> JsonObject:
    """Report the marks of somebody else, once everybody of the round has submitted."""
    initial = _initial_marks(work)
    work.round.require_complete()
    if "annotator" in work.visitor.roles:
        work.round.require_member(work.actor)
    if person not in work.round.people:
        raise NotFound("nobody {name!r} marked this recording", name=person[:40])
    return {"marks": marks_of(work.ops, person, initial)}


def edit(work: Begun, body: Edits) -> JsonObject:
    """Save the changes of one action."""
    facts = work.facts()
    work.round.require_open(work.actor)
    return _keep(work, body, STEPS.edited, facts)


def submit(work: Begun, body: EmptyBody) -> JsonObject:
    """Save the visitor's marks as a version of the recording's steps."""
    initial = _initial_marks(work)
    work.round.require_open(work.actor)
    version = _version(work, marks_of(work.ops, work.actor, initial), annotation_of(work.actor))
    work.keep(STEPS.submitted, {"version": version})
    return {"version": version, "annotation": annotation_of(work.actor)}


def accept_marks(work: Begun, body: EmptyBody) -> JsonObject:
    """Make the visitor's submitted marks the step times of the recording, which releases use."""
    return _accept(work, annotation_of(work.actor))


def ruling(work: Begun) -> JsonObject:
    """Report the marks people agree on, the choices where they differ, and the rulings so far."""
    initial, mine = _ruled(work)
    return {"marks": mine, "submitted": False, "choices": {mark["mark"]: mark["choices"] for mark in initial}}


def rule(work: Begun, body: Edits) -> JsonObject:
    """Save the changes of one action of the ruler."""
    work.round.require_ruler(work.actor)
    return _keep(work, body, RULED, work.facts())


def submit_ruling(work: Begun, body: EmptyBody) -> JsonObject:
    """Save the ruling as a version of the steps, and make it the recording's step times."""
    work.round.require_ruler(work.actor)
    _, mine = _ruled(work)
    annotation = annotation_of(f"{work.actor} {RULED}")
    _version(work, mine, annotation)
    return _accept(work, annotation)


def _ruled(work: review_routes.RecordingWork) -> tuple[list[StepMark], list[StepMark]]:
    """Return the merged marks of all people, and the marks as ruled so far. Raises NotNow before all submitted."""
    initial = _initial_marks(work)
    work.round.require_complete()
    marked = {person: marks_of(work.ops, person, initial) for person in work.round.people}
    marks = merged(work.subject, marked, Fraction(*work.facts()["fps"]))
    bare = [{key: value for key, value in mark.items() if key != "choices"} for mark in marks]
    return marks, marks_of(work.ops, work.actor, cast("list[StepMark]", bare), RULED)


def _initial_marks(work: review_routes.RecordingWork) -> list[StepMark]:
    return initial_marks(work.subject, touched_marks(work.subject, work.facts()["touches"], work.ops))


def _open(marks: list[StepMark]) -> int:
    return sum(2 - len({*mark["checked"]}) for mark in marks if not (mark["removed"] or mark["missing"]))


def _keep(work: review_routes.RecordingWork, body: Edits, kind: str, facts: dict[str, Any]) -> dict[str, Any]:
    nodes = {step["node"] for step in facts["steps"]}
    for step in body.edits:
        if step.node not in nodes:
            raise BadOperation("step {node} is not in this recording", node=str(step.node))
    work.keep(kind, {"edits": [step.model_dump() for step in body.edits]}, body.op_id)
    work.tools.intake.file()
    return {"kept": len(body.edits)}


def _version(work: review_routes.RecordingWork, marks: list[StepMark], annotation: int) -> int:
    """Save finished marks as a version of the recording's steps, unless it exists. Raises NotNow."""
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

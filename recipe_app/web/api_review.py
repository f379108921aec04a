"""Films in the browser and the steps that people mark on them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from pathlib import Path
from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.responses import FileResponse, Response
from pydantic import Field

from recipe_app.annotation.accept import accept
from recipe_app.cooking.collaborators import Collaborators
from recipe_app.errors import BadOperation, NotAllowed, NotFound, NotNow
from recipe_app.operations.kinds import OpId, Strict
from recipe_app.people.roles import Access
from recipe_app.releases.own import OwnRecording
from recipe_app.review.film_jobs import HEIGHTS
from recipe_app.review.mark_versions import keep_marks
from recipe_app.review.marks import (
    ACCEPTED,
    KIND,
    SUBMITTED,
    StepEdit,
    annotation_of,
    given_marks,
    is_submitted,
    marks_of,
    regions_of,
    require_finished,
)
from recipe_app.review.review_film import film_of
from recipe_app.store import tables
from recipe_app.web.access import Asking, Route, Tools
from recipe_app.web.pages import render
from storage.permission import Purpose, ask

ADDRESS_NS = 3600 * 10**9
"""How long the address of a film holds."""
MARKABLE = ("review", "done")
"""Phases of a recording in which nobody cooks any more."""
Height = Annotated[int, Query()]


class Edits(Strict):
    """What one action changed."""

    op_id: OpId
    edits: Annotated[list[StepEdit], Field(min_length=1, max_length=20)]


class Nobody(Strict):
    """Nothing to say."""


def review_page(request: Request, tools: Tools, visitor: Asking, recording: str) -> Response:
    """The steps of a recording on its film."""
    tools.records.state(recording)
    return render(request, "desk/steps.html", visitor=visitor, recording=recording)


def to_review(request: Request, tools: Tools, visitor: Asking) -> Response:
    """The recordings whose steps can be marked, newest first; nothing of errors is told."""
    table = tables.recording
    rows = tools.records.rows(table, table.c.folder.is_not(None), order=table.c.created_utc_ns.desc())
    found = [row for row in rows if row["phase"] in MARKABLE]
    mine = {row["id"] for row in found if is_submitted(tools.records.ops(row["id"]), visitor.actor)}
    return render(request, "desk/review.html", visitor=visitor, recordings=found, submitted=mine)


def film(tools: Tools, visitor: Asking, recording: str, height: Height = HEIGHTS[0]) -> dict[str, Any]:
    """Say how the film of a recording is, with an address of it that holds for an hour when it is ready."""
    folder = _folder(tools, recording)
    state = tools.films.state(folder, _height(height))
    if state["state"] != "ready":
        return state
    return state | {"address": f"/api/v1/films/{_token(tools, recording, height, visitor.actor)}.mp4"}


def make_film(tools: Tools, recording: str, body: Nobody, height: Height = HEIGHTS[0]) -> dict[str, Any]:
    """Have the film of a recording made."""
    folder = _folder(tools, recording)
    tools.films.ask(folder, _height(height))
    return tools.films.state(folder, height)


def film_file(tools: Tools, visitor: Asking, token: str) -> Response:
    """Give a film, or a part of it; to whom the address was given, and while it holds."""
    recording, height = _read_token(tools, token, visitor.actor)
    folder = _folder(tools, recording)
    path = film_of(folder, height)
    if tools.films.state(folder, height)["state"] != "ready":
        raise NotFound("no film {name!r}; load the page again", name=path.name)
    return FileResponse(path, media_type="video/mp4")


def marks(tools: Tools, visitor: Asking, recording: str) -> dict[str, Any]:
    """Say what somebody marked so far; nobody sees the marks of others here."""
    facts = _facts(tools, recording)
    ops = tools.records.ops(recording)
    mine = marks_of(ops, visitor.actor, given_marks(recording, facts["touches"]))
    return {"marks": mine, "submitted": is_submitted(ops, visitor.actor)}


def edit(tools: Tools, visitor: Asking, recording: str, body: Edits) -> dict[str, Any]:
    """Keep what one action changed."""
    facts = _facts(tools, recording)
    nodes = {step["node"] for step in facts["steps"]}
    for one in body.edits:
        if one.node not in nodes:
            raise BadOperation("step {node} is not in this recording", node=str(one.node))
    kept = {"edits": [one.model_dump() for one in body.edits]}
    tools.records.note(KIND, recording, kept, actor=visitor.actor, op_id=body.op_id)
    tools.intake.file()
    return {"kept": len(body.edits)}


def submit(tools: Tools, visitor: Asking, recording: str, body: Nobody) -> dict[str, Any]:
    """Take what somebody marked as a version of the recording's steps."""
    folder, facts = _folder(tools, recording), _facts(tools, recording)
    ops = tools.records.ops(recording)
    mine = marks_of(ops, visitor.actor, given_marks(recording, facts["touches"]))
    require_finished(mine, facts["frames"])
    labels = {step["node"]: step["label"] for step in facts["steps"]}
    annotation = annotation_of(visitor.actor)
    by = visitor.person["pseudonym"] if visitor.person else ""
    version = keep_marks(folder, facts, annotation, by, regions_of(mine, labels), mine)
    tools.records.note(SUBMITTED, recording, {"version": version}, actor=visitor.actor)
    return {"version": version, "annotation": annotation}


def accept_marks(tools: Tools, visitor: Asking, recording: str, body: Nobody) -> dict[str, Any]:
    """Make what one submitted the step times of the recording, which releases use."""
    films = frozenset([_facts(tools, recording)["sha256"]])
    with OwnRecording.open(_folder(tools, recording), purpose=Purpose.ANNOTATE) as own:
        made = accept(own, annotation_of(visitor.actor), films)
    tools.records.note(ACCEPTED, recording, {"version": made["version"]}, actor=visitor.actor)
    return {"version": made["version"], "steps": len(made["steps"])}


def _folder(tools: Collaborators, recording: str) -> Path:
    """Return the folder of a recording that may be annotated. Raises NotFound, Withdrawn, NotPermitted."""
    row = tools.records.row(tables.recording, recording)
    if row is None or not row["folder"]:
        raise NotFound("no film of {name!r}: it has no folder of recorded data", name=recording[:40])
    folder = (tools.folders.data / row["folder"]).absolute()
    ask(folder, Purpose.ANNOTATE)
    return folder


def _facts(tools: Collaborators, recording: str) -> dict[str, Any]:
    state = tools.films.state(_folder(tools, recording), HEIGHTS[0])
    if state["state"] != "ready":
        raise NotNow("the film is not made yet; open the page of its steps first")
    facts: dict[str, Any] = state["facts"]
    return facts


def _height(height: int) -> int:
    if height not in HEIGHTS:
        raise BadOperation("there are films of 360 and 720 lines")
    return height


def _token(tools: Collaborators, recording: str, height: int, actor: str) -> str:
    said = json.dumps([recording, height, tools.records.utc_ns() + ADDRESS_NS]).encode()
    return base64.urlsafe_b64encode(_seal(tools, said, actor) + said).decode().rstrip("=")


def _read_token(tools: Collaborators, token: str, actor: str) -> tuple[str, int]:
    try:
        content = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        seal, said = content[:32], content[32:]
        if not hmac.compare_digest(seal, _seal(tools, said, actor)):
            raise ValueError
        recording, height, until_utc_ns = json.loads(said)
    except ValueError:
        raise NotFound("no film {name!r}; load the page again", name=token[:20]) from None
    if tools.records.utc_ns() > until_utc_ns:
        raise NotAllowed("this address of a film does not hold any more; load the page again")
    return recording, height


def _seal(tools: Collaborators, said: bytes, actor: str) -> bytes:
    return hmac.digest(tools.film_key, said + b"\0" + actor.encode(), hashlib.sha256)


RECORDING = "/api/v1/desk/recordings/{recording}"
ROUTES = [
    Route("/desk/review", to_review, Access.ANNOTATE, page=True),
    Route("/desk/recordings/{recording}/steps", review_page, Access.ANNOTATE, page=True),
    Route(f"{RECORDING}/film", film, Access.ANNOTATE),
    Route(f"{RECORDING}/film", make_film, Access.ANNOTATE, "POST"),
    Route("/api/v1/films/{token}.mp4", film_file, Access.ANNOTATE),
    Route(f"{RECORDING}/marks", marks, Access.ANNOTATE),
    Route(f"{RECORDING}/marks", edit, Access.ANNOTATE, "POST"),
    Route(f"{RECORDING}/marks/submit", submit, Access.ANNOTATE, "POST"),
    Route(f"{RECORDING}/marks/accept", accept_marks, Access.STUDY, "POST"),
]

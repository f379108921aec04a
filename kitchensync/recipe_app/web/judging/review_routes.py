"""Routes that every kind of review shares: assign people, answer independently, compare, accept.

A kind of review provides its items, the state of its page, the comparison of answers, and what is accepted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request
from fastapi.responses import Response
from pydantic import Field

from kitchensync.operations.errors import BadOperation
from kitchensync.operations.operation_kinds import OpId, Strict
from kitchensync.operations.session_state import Op
from kitchensync.recipe_app.cooking.collaborators import Collaborators
from kitchensync.recipe_app.people.accounts import Visitor
from kitchensync.recipe_app.people.roles import HOLDERS, Access
from kitchensync.recipe_app.review.judged_answers import GivenAnswer
from kitchensync.recipe_app.review.rounds import ASSIGNED, Review, Round, round_of
from kitchensync.recipe_app.store import tables
from kitchensync.recipe_app.store.app_records import roles_of
from kitchensync.recipe_app.web.bodies import EmptyBody
from kitchensync.recipe_app.web.desk.pages import render
from kitchensync.recipe_app.web.door.access import Asking, JsonObject, Route, Tools
from kitchensync.recipe_app.web.door.request_bodies import RequestBody
from kitchensync.recipe_app.web.judging.api_films import film_facts, film_folder
from kitchensync.storage.recording_files.annotation_folder import add_judged
from kitchensync.task_graphs.errors import NotFound

MOST_PEOPLE = 20
Ops = list[Op]
T = TypeVar("T")
Endpoint = Callable[..., JsonObject]


class Asked(Strict):
    """The people who are to answer."""

    people: Annotated[list[Annotated[str, Field(max_length=40)]], Field(max_length=MOST_PEOPLE)] = Field(
        default_factory=list
    )

    @property
    def each(self) -> list[str]:
        """The people, each once."""
        return list(dict.fromkeys(self.people))


class Judged(Strict):
    """One answer of one person."""

    op_id: OpId
    answer: GivenAnswer


@dataclass(frozen=True, slots=True)
class ReviewWork:
    """A visitor's request about one reviewed subject of the log."""

    tools: Collaborators
    visitor: Visitor
    subject: str
    review: Review
    ops: Ops
    round: Round

    @property
    def actor(self) -> str:
        """The id of the visitor."""
        return self.visitor.actor

    def mine(self, answers: Callable[[Ops, str, str], T]) -> T:
        """Return the visitor's answers; `answers` reads them from the operations of a kind and a person."""
        return answers(self.ops, self.review.edited, self.actor)

    def of_everybody(self, answers: Callable[[Ops, str, str], T]) -> dict[str, T]:
        """Return the answers of each person of the round."""
        return {person: answers(self.ops, self.review.edited, person) for person in self.round.people}

    def choice(self, kind: str, what: str | None = None) -> dict[str, Any]:
        """Return the newest operation of a kind that chose items; no items if there is none."""
        bodies = (op["body"] for op in reversed(self.ops) if op["kind"] == kind)
        return next((body for body in bodies if what in (None, body.get("what"))), {"items": []})

    def keep(self, kind: str, body: dict[str, Any], op_id: str = "") -> None:
        """Append an operation of the visitor to the log."""
        self.tools.records.note(kind, self.subject, body, actor=self.actor, op_id=op_id)


@dataclass(frozen=True, slots=True)
class RecordingWork(ReviewWork):
    """Review work on a recording that may be annotated, with its folder."""

    folder: Path

    def facts(self) -> dict[str, Any]:
        """Return the facts of the recording's small video. Raises NotNow if it is not made yet."""
        return film_facts(self.tools, self.folder)


def work_on(tools: Collaborators, visitor: Visitor, recording: str, review: Review) -> RecordingWork:
    """Return the work on a recording to review. Raises NotFound, Withdrawn, NotPermitted."""
    ops, folder = tools.records.begun(recording), film_folder(tools, recording)
    return RecordingWork(tools, visitor, recording, review, ops, round_of(ops, review), folder)


def on_recording(review: Review) -> Any:
    """Return a FastAPI dependency that loads the work on the recording in the path."""

    def work(tools: Tools, visitor: Asking, recording: str) -> RecordingWork:
        return work_on(tools, visitor, recording, review)

    return Depends(work)


def who_may(tools: Collaborators, access: Access) -> dict[str, str]:
    """Return the people who have an access, id -> pseudonym, sorted by pseudonym."""
    rows = tools.records.rows(tables.person, order=tables.person.c.pseudonym)
    return {row["id"]: row["pseudonym"] for row in rows if _holds(row, access)}


def ask_people(work: ReviewWork, request: Asked, access: Access) -> JsonObject:
    """Assign people to answer; from then on only they may. Raises BadOperation, NotFound, NotNow."""
    least = work.review.least
    if work.review.asks == "exactly" and len(request.each) != least:
        raise BadOperation("ask {count} people, no more and no less", count=least)
    if work.review.asks == "at_least" and len(request.each) < least:
        raise BadOperation("ask {count} people or more", count=least)
    work.round.require_hidden()
    rows = [work.tools.records.row(tables.person, person) for person in request.people]
    if not all(row is not None and _holds(row, access) for row in rows):
        raise NotFound("somebody who was asked may not do this; look at the list of people")
    assignment = {"what": work.review.what, "people": request.each}
    work.keep(ASSIGNED, assignment)
    return assignment


def _holds(row: Any, access: Access) -> bool:
    return bool(HOLDERS[access] & {*roles_of(row)})


def routes(
    of: str,
    page: str,
    begin: Any,
    *,
    counted: str,
    items: Callable[[RecordingWork], Any],
    page_state: Callable[[RecordingWork, Any], dict[str, object]],
    compared: Callable[[RecordingWork, Any], dict[str, object]],
    require_done: Callable[[RecordingWork, Any], None],
    accepted: Callable[[RecordingWork, Any], dict[str, object]],
    judge: Endpoint,
    ask: Endpoint | None = None,
    rule: Endpoint | None = None,
    ask_body: RequestBody | None = None,
    needs_film: bool = False,
) -> list[Route]:
    """Return the routes of a kind of review of recordings; `judge`, `ask` and `rule` are endpoints with own bodies.

    `page_state` is always shown, `compared` only when all have submitted; `require_done` raises NotNow while
    answers are missing; `accepted` returns what is saved in the recording's folder.
    `needs_film`: submitting and accepting need the small video, for its frame rate and length.
    """

    def review_page(request: Request, work: RecordingWork = begin) -> Response:
        row = work.tools.records.row(tables.recording, work.subject)
        name = Path(row["folder"] or "").name if row else ""
        fields = {"visitor": work.visitor, "may": who_may(work.tools, Access.STUDY), "name": name}
        return render(request, page, **fields, **request.path_params)

    def review(work: RecordingWork = begin) -> JsonObject:
        """Report the items, the visitor's answers, who answers and, when all have submitted, the comparison."""
        chosen = items(work)
        answer = {**work.round.for_page(work.actor), **page_state(work, chosen)}
        return answer | compared(work, chosen) if work.round.is_complete else answer

    def assign(body: Asked, work: RecordingWork = begin) -> JsonObject:
        """Assign people to answer; from then on only they may."""
        return ask_people(work, body, Access.STUDY)

    def submit(body: EmptyBody, work: RecordingWork = begin) -> JsonObject:
        """Submit the visitor's answers."""
        chosen = items(work)
        if needs_film:
            work.facts()
        work.round.require_open(work.actor)
        require_done(work, chosen)
        work.keep(work.review.submitted, {})
        return {counted: len(chosen)}

    def accept(body: EmptyBody, work: RecordingWork = begin) -> JsonObject:
        """Save the agreed and ruled answers as a version in the recording's folder."""
        chosen = items(work)
        if needs_film:
            work.facts()
        work.round.require_complete()
        content = {"author": work.visitor.pseudonym, "kept_utc_ns": time.time_ns(), **accepted(work, chosen)}
        return {"version": add_judged(work.folder, work.review.what, content), counted: len(chosen)}

    path = f"/api/v1/desk/recordings/{{recording}}/{of}"
    posts = {"": judge, "/ask": ask, "/submit": submit, "/assign": assign, "/rule": rule, "/accept": accept}
    return [
        Route(f"/desk/recordings/{{recording}}/{of}", review_page, Access.STUDY, page=True),
        Route(path, review, Access.STUDY),
        *(
            Route(path + end, endpoint, Access.STUDY, "POST", body=ask_body if endpoint is ask else None)
            for end, endpoint in posts.items()
            if endpoint
        ),
    ]

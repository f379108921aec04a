"""What every kind of review has in common over HTTP: people are asked, answer alone, see all, keep what holds.

A kind says what its items are, what its page is told of them, how answers compare, and what is kept.
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
    """Who is to answer."""

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
    """What somebody asks about one subject of the log that people review."""

    tools: Collaborators
    visitor: Visitor
    subject: str
    review: Review
    ops: Ops
    here: Round

    @property
    def actor(self) -> str:
        """The id of who asks."""
        return self.visitor.actor

    def mine(self, answers: Callable[[Ops, str, str], T]) -> T:
        """Return what who asks answered, as `answers` reads it from the operations of a kind and a person."""
        return answers(self.ops, self.review.edited, self.actor)

    def of_everybody(self, answers: Callable[[Ops, str, str], T]) -> dict[str, T]:
        """Return what each person of the round answered."""
        return {person: answers(self.ops, self.review.edited, person) for person in self.here.people}

    def asked(self, kind: str, what: str | None = None) -> dict[str, Any]:
        """Return what was asked last by operations of a kind; no items where nothing was."""
        said = (op["body"] for op in reversed(self.ops) if op["kind"] == kind)
        return next((one for one in said if what in (None, one.get("what"))), {"items": []})

    def keep(self, kind: str, said: dict[str, Any], op_id: str = "") -> None:
        """Append an operation of who asks."""
        self.tools.records.note(kind, self.subject, said, actor=self.actor, op_id=op_id)


@dataclass(frozen=True, slots=True)
class RecordingWork(ReviewWork):
    """The same about a recording that may be used, in its folder."""

    folder: Path

    def facts(self) -> dict[str, Any]:
        """Return what is known of the recording's small film. Raises NotNow."""
        return film_facts(self.tools, self.folder)


def work_on(tools: Collaborators, visitor: Visitor, recording: str, review: Review) -> RecordingWork:
    """Load the log, round and folder of a recording to review. Raises NotFound, Withdrawn, NotPermitted."""
    ops, folder = tools.records.begun(recording), film_folder(tools, recording)
    return RecordingWork(tools, visitor, recording, review, ops, round_of(ops, review), folder)


def on_recording(review: Review) -> Any:
    """Return what loads the work on the recording that the path names, for the framework."""

    def work(tools: Tools, visitor: Asking, recording: str) -> RecordingWork:
        return work_on(tools, visitor, recording, review)

    return Depends(work)


def who_may(tools: Collaborators, access: Access) -> dict[str, str]:
    """Return the people who hold an access, id -> pseudonym, by pseudonym."""
    rows = tools.records.rows(tables.person, order=tables.person.c.pseudonym)
    return {row["id"]: row["pseudonym"] for row in rows if _holds(row, access)}


def ask_people(work: ReviewWork, asked: Asked, access: Access) -> JsonObject:
    """Ask people to answer; from then on only they may. Raises BadOperation, NotFound, NotNow."""
    least = work.review.least
    if work.review.asks == "exactly" and len(asked.each) != least:
        raise BadOperation("ask {count} people, no more and no less", count=least)
    if work.review.asks == "at_least" and len(asked.each) < least:
        raise BadOperation("ask {count} people or more", count=least)
    work.here.require_hidden()
    rows = [work.tools.records.row(tables.person, one) for one in asked.people]
    if not all(row is not None and _holds(row, access) for row in rows):
        raise NotFound("somebody who was asked may not do this; look at the list of people")
    said = {"what": work.review.what, "people": asked.each}
    work.keep(ASSIGNED, said)
    return said


def _holds(row: Any, access: Access) -> bool:
    return bool(HOLDERS[access] & {*roles_of(row)})


def routes(
    of: str,
    page: str,
    begin: Any,
    *,
    counted: str,
    items: Callable[[RecordingWork], Any],
    told: Callable[[RecordingWork, Any], dict[str, object]],
    compared: Callable[[RecordingWork, Any], dict[str, object]],
    require_done: Callable[[RecordingWork, Any], None],
    accepted: Callable[[RecordingWork, Any], dict[str, object]],
    judge: Endpoint,
    ask: Endpoint | None = None,
    rule: Endpoint | None = None,
    ask_body: RequestBody | None = None,
    needs_film: bool = False,
) -> list[Route]:
    """Return the routes of a kind of review of recordings; `judge`, `ask` and `rule` have bodies of their own.

    `told` is what the page always shows, `compared` what it shows besides when all have submitted; `require_done`
    raises NotNow for who has not answered everything, `accepted` returns what is kept in the recording's folder.
    `needs_film`: only with its small film, which says the film's rate and length, somebody submits or accepts.
    """

    def review_page(request: Request, work: RecordingWork = begin) -> Response:
        row = work.tools.records.row(tables.recording, work.subject)
        name = Path(row["folder"] or "").name if row else ""
        said = {"visitor": work.visitor, "may": who_may(work.tools, Access.STUDY), "name": name}
        return render(request, page, **said, **request.path_params)

    def review(work: RecordingWork = begin) -> JsonObject:
        """Report what is asked, what one answered, who answers and, when all have submitted, how they compare."""
        asked = items(work)
        said = {**work.here.told(work.actor), **told(work, asked)}
        return said | compared(work, asked) if work.here.is_complete else said

    def assign(body: Asked, work: RecordingWork = begin) -> JsonObject:
        """Ask people to answer; from then on only they may."""
        return ask_people(work, body, Access.STUDY)

    def submit(body: EmptyBody, work: RecordingWork = begin) -> JsonObject:
        """Say that one has answered everything."""
        asked = items(work)
        if needs_film:
            work.facts()
        work.here.require_open(work.actor)
        require_done(work, asked)
        work.keep(work.review.submitted, {})
        return {counted: len(asked)}

    def accept(body: EmptyBody, work: RecordingWork = begin) -> JsonObject:
        """Keep what was agreed and ruled as a version in the recording's folder."""
        asked = items(work)
        if needs_film:
            work.facts()
        work.here.require_complete()
        content = {"author": work.visitor.pseudonym, "kept_utc_ns": time.time_ns(), **accepted(work, asked)}
        return {"version": add_judged(work.folder, work.review.what, content), counted: len(asked)}

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

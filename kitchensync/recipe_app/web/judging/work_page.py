"""The queue of recordings to mark and judge: assignments, progress, and assigning many recordings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import Request
from fastapi.responses import RedirectResponse, Response
from pydantic import Field

from kitchensync.dataset.narration.narrations import draw_recordings
from kitchensync.recipe_app.cooking.collaborators import Collaborators
from kitchensync.recipe_app.people.roles import Access
from kitchensync.recipe_app.review.judged_answers import ERRORS
from kitchensync.recipe_app.review.marks import ACCEPTED, STEPS
from kitchensync.recipe_app.review.recorded_evidence import LOOKED_BACK
from kitchensync.recipe_app.review.rounds import Round, round_of
from kitchensync.recipe_app.store import tables
from kitchensync.recipe_app.web.desk.pages import render
from kitchensync.recipe_app.web.door.access import Asking, JsonObject, Route, Tools
from kitchensync.recipe_app.web.i18n import words_of
from kitchensync.recipe_app.web.judging.review_routes import MOST_PEOPLE, Asked, ask_people, who_may, work_on
from kitchensync.storage.consent import Purpose
from kitchensync.storage.errors import StorageError
from kitchensync.task_graphs.errors import RecipeError

WHAT = {"steps": (STEPS, Access.ANNOTATE), "errors": (ERRORS.review, Access.STUDY)}
"""Kinds of work that can be assigned for many recordings, and the access they need."""
SHOWN = ("to_do", "mine", "unasked", "open", "ruling", "done", "all")
Shown = Literal["to_do", "mine", "unasked", "open", "ruling", "done", "all"]


class AssignedWork(Asked):
    """The people, the kind of work and the recordings of an assignment."""

    what: Literal["steps", "errors"] = "steps"
    people: Annotated[list[Annotated[str, Field(max_length=40)]], Field(min_length=1, max_length=MOST_PEOPLE)]
    recordings: Annotated[list[Annotated[str, Field(max_length=40)]], Field(min_length=1, max_length=400)]


@dataclass(frozen=True, slots=True)
class QueuedRecording:
    """One recording of the queue."""

    row: dict[str, Any]
    steps: Round
    errors: Round
    is_accepted: bool
    lacking: list[str]
    "What its consent lacks."

    @property
    def state(self) -> str:
        """Return the state of its step marking: `unasked`, `open`, `ruling` or `done`."""
        if self.is_accepted:
            return "done"
        if self.steps.is_complete:
            return "ruling"
        return "open" if self.steps.people else "unasked"

    def is_for(self, actor: str) -> bool:
        """Return whether somebody may mark its steps: assigned, already marking, or nobody is assigned."""
        return actor in self.steps.people or not self.steps.is_assigned

    def is_left(self, actor: str) -> bool:
        """Return whether somebody still has its steps to mark."""
        is_needed = actor in self.steps.people or len(self.steps.people) < self.steps.least
        return (
            self.is_for(actor) and is_needed and not self.steps.is_submitted(actor) and not self.is_accepted
        )


def _queue(tools: Collaborators) -> list[QueuedRecording]:
    """Return the finished recordings that may be annotated, the newest first."""
    table = tables.recording
    rows = tools.records.rows(table, table.c.folder.is_not(None), order=table.c.created_utc_ns.desc())
    queue = []
    for row in rows:
        lacking = tools.folders.lacking_consent(row["folder"])
        why_aborted = tools.folders.why_aborted(row["folder"])
        if row["phase"] in LOOKED_BACK and not why_aborted and Purpose.ANNOTATE not in lacking:
            ops = tools.records.ops(row["id"])
            accepted = any(op["kind"] == ACCEPTED for op in ops)
            steps, errors = round_of(ops, STEPS), round_of(ops, ERRORS.review)
            queue.append(QueuedRecording(row, steps, errors, accepted, lacking))
    return queue


def _is_shown(work: QueuedRecording, show: str, actor: str) -> bool:
    """Return whether a recording is in a view of the queue."""
    if show in ("all", "to_do"):
        return show == "all" or work.state != "done"
    return work.is_left(actor) if show == "mine" else work.state == show


def work_page(request: Request, tools: Tools, visitor: Asking, show: Shown | None = None) -> Response:
    """Show the queue of recordings; annotators see only their own work, and no errors."""
    studies = visitor.may(Access.STUDY)
    everything = _queue(tools)
    queue = [work for work in everything if studies or work.is_for(visitor.actor)]
    shown = show or ("to_do" if studies else "all")
    fields = {
        "visitor": visitor,
        "studies": studies,
        "queue": [work for work in queue if _is_shown(work, shown, visitor.actor)],
        "counts": {name: sum(_is_shown(work, name, visitor.actor) for work in queue) for name in SHOWN},
        "show": shown,
        "names": {row["id"]: row["pseudonym"] for row in tools.records.rows(tables.person)},
        "may": {what: who_may(tools, access) for what, (_, access) in WHAT.items()},
        "drawn": draw_recordings({work.row["id"]: work.row["recipe"] for work in everything}, seed=0),
    }
    return render(request, "desk/work.html", **fields)


def next_to_mark(tools: Tools, visitor: Asking, after: str = "") -> Response:
    """Redirect to the next recording the visitor has to mark after one of the queue, else to the queue."""
    queue = [work for work in _queue(tools) if work.is_left(visitor.actor) or work.row["id"] == after]
    ids = [work.row["id"] for work in queue]
    at = ids.index(after) + 1 if after in ids else 0
    remaining = [recording for recording in ids[at:] + ids[:at] if recording != after]
    return RedirectResponse(f"/desk/recordings/{remaining[0]}/steps" if remaining else "/desk/review", 303)


def assign_many(request: Request, tools: Tools, visitor: Asking, body: AssignedWork) -> JsonObject:
    """Assign people to many recordings, in addition to those already there; report what is refused and why."""
    review, access = WHAT[body.what]
    refused = []
    for recording in dict.fromkeys(body.recordings):
        try:
            work = work_on(tools, visitor, recording, review)
            # Those who already work on it stay assigned: an assignment replaces the one before.
            ask_people(work, Asked(people=[*work.round.people, *body.each]), access)
        except (RecipeError, StorageError) as error:
            refused.append({"recording": recording, "why": words_of(request).refusal(error)})
    return {"asked": len({*body.recordings}) - len(refused), "refused": refused}


ROUTES = [
    Route("/desk/review", work_page, Access.ANNOTATE, page=True),
    Route("/desk/review/next", next_to_mark, Access.ANNOTATE, page=True),
    Route("/api/v1/desk/assign", assign_many, Access.STUDY, "POST"),
]

"""The desk's plan and coverage of a study: edited, planned again, shown, exported."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.responses import Response

from kitchensync.operations.errors import NotNow
from kitchensync.recipe_app.cooking import study_at_desk, training
from kitchensync.recipe_app.people.roles import Access
from kitchensync.recipe_app.store import tables
from kitchensync.recipe_app.study import next_sessions
from kitchensync.recipe_app.study import study_progress as progress
from kitchensync.recipe_app.study.calendar_file import calendar, weeks_page
from kitchensync.recipe_app.study.study_file import BadStudy
from kitchensync.recipe_app.web.bodies import EditedStudy, StudyPlanFile
from kitchensync.recipe_app.web.desk.pages import attachment, render
from kitchensync.recipe_app.web.door.access import Asking, JsonObject, Route, Tools
from kitchensync.recipe_app.web.door.request_bodies import RequestBody

PLAN = RequestBody(8 << 20, at_once=1)
"""A plan of a study, at most 20,000 sessions."""
MOST_LACK = 5
Words = Annotated[list[Annotated[str, Query(max_length=80)]], Query(max_length=6)]
Word = Annotated[str, Query(max_length=600)]


def plan(request: Request, tools: Tools, visitor: Asking) -> Response:
    """Show the study, its sessions and which were started, unmet wishes and why; edit and plan it again."""
    number, kept = next_sessions.kept_plan(tools.records)
    gone = next_sessions.taken(tools.records)
    rows = [
        (planned.entry, gone.get(planned.session), planned.session)
        for planned in next_sessions.sessions_of(tools.records)
    ]
    people = {row["pseudonym"]: row["id"] for row in tools.records.rows(tables.person, limit=1 << 20)}
    pairs = {(entry.recipe, entry.person) for entry, *_ in rows if entry.person in people}
    fields = {
        "sessions": rows,
        "due": {
            (recipe, person): len(training.due(tools.records, recipe, people[person]))
            for recipe, person in pairs
        },
        "seen": number,
        "study": kept.get("study", ""),
        "unmet": kept.get("unmet", []),
        "notes": kept.get("notes", []),
    }
    return render(request, "desk/plan.html", visitor=visitor, **fields)


def take_plan(tools: Tools, visitor: Asking, body: StudyPlanFile) -> JsonObject:
    """Import a study's plan, from which tablets offer the next session; refused as in `edit_study`."""
    study_plan = body.model_dump(exclude={"seen"})
    return {
        "sessions": next_sessions.keep_plan(tools.records, study_plan, seen=body.seen, actor=visitor.actor)
    }


def edit_study(tools: Tools, visitor: Asking, body: EditedStudy) -> JsonObject:
    """Save a study and plan it again from now; refused if somebody else changed it since it was loaded."""
    made = study_at_desk.plan_anew(tools, body.study, locked=set(body.locked))
    kept = next_sessions.keep_plan(tools.records, made, seen=body.seen, actor=visitor.actor)
    return {"sessions": kept, "unmet": made["unmet"]}


def coverage(
    request: Request,
    tools: Tools,
    visitor: Asking,
    by: Words = ["recipe", "strategy"],  # noqa: B006 - FastAPI copies it
    row: Word = "",
    stage: Word = "recorded",
) -> Response:
    """Show the coverage of the study by some dimensions, the largest gaps first; cells link to recordings."""
    names = _names(by)
    fields: dict[str, Any] = {
        "by": names,
        "dimensions": progress.DIMENSIONS,
        "stages": progress.STAGES,
        "row": row,
        "stage": stage,
        "problem": "",
        "coverage": None,
    }
    try:
        if (so_far := study_at_desk.study_so_far(tools)) is not None:
            covered = progress.coverage(so_far.study, so_far.cooked, so_far.coming, names)
            fields |= {"coverage": covered, "left_out": so_far.left_out}
            fields["lack"] = covered.missing_most(MOST_LACK)
            fields["chosen"] = [
                cooked
                for cooked in covered.recordings.get(tuple(row.split("|")), [])
                if stage in cooked.stages
            ]
            rows = tools.records.rows(tables.recording, tables.recording.c.folder.is_not(None), limit=1 << 20)
            fields["known"] = {recording["folder"]: recording["id"] for recording in rows}
    except BadStudy as error:
        fields["problem"] = str(error)
    return render(request, "desk/coverage.html", visitor=visitor, **fields)


def coverage_csv(tools: Tools, by: Words = ["recipe", "strategy"]) -> Response:  # noqa: B006
    """Download the coverage as a table."""
    return attachment(progress.as_csv(_covered(tools, by).rows, _names(by)), "text/csv", "coverage.csv")


def coverage_svg(tools: Tools, by: Words = ["recipe", "strategy"]) -> Response:  # noqa: B006
    """Download the coverage as a picture."""
    return attachment(progress.as_picture(_covered(tools, by).rows), "image/svg+xml", "coverage.svg")


def _covered(tools: Tools, by: list[str]) -> progress.StudyCoverage:
    so_far = study_at_desk.study_so_far(tools)
    if so_far is None:
        raise NotNow("no study is kept here; write one under Plan")
    return progress.coverage(so_far.study, so_far.cooked, so_far.coming, _names(by))


def _names(by: list[str]) -> list[str]:
    return [name for name in progress.DIMENSIONS if name in by] or ["recipe"]


def plan_calendar(tools: Tools) -> Response:
    """Download the planned sessions as a calendar."""
    entries = [planned.entry for planned in next_sessions.sessions_of(tools.records)]
    return attachment(calendar(entries), "text/calendar", "plan.ics")


def plan_weeks(tools: Tools) -> Response:
    """Download the planned sessions as a page to print, one week per sheet."""
    entries = [planned.entry for planned in next_sessions.sessions_of(tools.records)]
    return attachment(weeks_page(entries, study_at_desk.zone_of(tools), "Plan"), "text/html", "plan.html")


ROUTES = [
    Route("/desk/plan", plan, Access.OPERATE, page=True),
    Route("/desk/plan.ics", plan_calendar, Access.OPERATE),
    Route("/desk/plan.html", plan_weeks, Access.OPERATE),
    Route("/desk/coverage", coverage, Access.OPERATE, page=True),
    Route("/desk/coverage.csv", coverage_csv, Access.OPERATE),
    Route("/desk/coverage.svg", coverage_svg, Access.OPERATE),
    Route("/api/v1/desk/plan", take_plan, Access.OPERATE, "POST", body=PLAN),
    Route("/api/v1/desk/study", edit_study, Access.OPERATE, "POST", body=PLAN),
]

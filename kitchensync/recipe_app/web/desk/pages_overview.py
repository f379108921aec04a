"""The desk's list of recordings: searched, filtered, sorted, a page at a time."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from fastapi import Query, Request
from fastapi.responses import Response
from sqlalchemy import ColumnElement, func, or_, select

from kitchensync.operations.operation_kinds import Strict
from kitchensync.operations.reduce import PHASES
from kitchensync.recipe_app.cooking.unlisted import cooks, put_into_list, unlisted_recordings
from kitchensync.recipe_app.exchange import published
from kitchensync.recipe_app.people.roles import Access
from kitchensync.recipe_app.store import tables
from kitchensync.recipe_app.study.wanted import STRATEGIES
from kitchensync.recipe_app.web.bodies import Id
from kitchensync.recipe_app.web.desk.pages import kitchens_of, render
from kitchensync.recipe_app.web.door.access import Asking, Route, Tools

PAGE = 100
FILTERED = (*STRATEGIES, "published")
SORTS = {
    "newest": tables.recording.c.created_utc_ns.desc(),
    "oldest": tables.recording.c.created_utc_ns,
    "recipe": tables.recording.c.recipe,
    "errors": tables.recording.c.errors.desc(),
}
Cooked = Literal["normal", "impromptu", "induced"]
"""Strategies of a session without a tablet: a disordered script needs a tablet that shows it."""
Word = Annotated[str, Query(max_length=80)]


class PutIntoList(Strict):
    """The recipe, cook and kitchen of a recording that no tablet started."""

    folder: Id
    recipe: Id
    strategy: Cooked = "normal"
    person: Id
    kitchen: Id


def overview(
    request: Request,
    tools: Tools,
    visitor: Asking,
    q: Word = "",
    strategy: Word = "",
    phase: Word = "",
    person: Word = "",
    kitchen: Word = "",
    recipe: Word = "",
    sort: Literal["newest", "oldest", "recipe", "errors"] = "newest",
    page: Annotated[int, Query(ge=1, le=10**6)] = 1,
    unlisted: Word = "",
) -> Response:
    """Show the list of recordings."""
    table = tables.recording
    equal = {"strategy": strategy, "phase": phase, "person": person, "kitchen": kitchen, "recipe": recipe}
    conditions = _conditions(q, equal)
    query = (
        select(table)
        .where(*conditions)
        .order_by(SORTS[sort], table.c.id)
        .limit(PAGE)
        .offset((page - 1) * PAGE)
    )
    with tools.records.database.reading() as connection:
        count = int(
            connection.execute(select(func.count()).select_from(table).where(*conditions)).scalar() or 0
        )
        rows = [row._asdict() for row in connection.execute(query)]
        names = [row.recipe for row in connection.execute(select(table.c.recipe).distinct())]
    chosen = {"q": q, **equal, "sort": sort}
    fields = {
        "recordings": rows,
        "lacking": {row["id"]: tools.folders.lacking_consent(row["folder"]) for row in rows},
        "judged": {row["id"]: tools.judge.against(row) for row in rows},
        "people": {row["id"]: row["pseudonym"] for row in tools.records.rows(tables.person)},
        "cooks": cooks(tools),
        "unlisted": unlisted_recordings(tools),
        "to_list": unlisted,
        "shelf": tools.shelf.recipes(),
        "kitchens": kitchens_of(tools),
        "recipes": {name: name.replace("_", " ") for name in sorted(names)},
        "collections": published.collections(tools.records),
        "chosen": chosen,
        "filters": {key: value for key, value in chosen.items() if value and value != "newest"},
        "count": count,
        "page": page,
        "pages": max(1, -(-count // PAGE)),
        "choices": {"strategy": FILTERED, "phase": PHASES, "sort": tuple(SORTS), "cooked": get_args(Cooked)},
    }
    return render(request, "desk/overview.html", visitor=visitor, **fields)


def put_in(tools: Tools, visitor: Asking, body: PutIntoList) -> dict[str, str]:
    """Put a recording that no tablet started into the list, to be marked, judged and counted like others."""
    return {"recording": put_into_list(tools, **body.model_dump(), actor=visitor.actor)}


def _conditions(words: str, equal: dict[str, str]) -> list[ColumnElement[bool]]:
    """Require every word in the recipe, the folder or the person's pseudonym."""
    table, person = tables.recording, tables.person
    conditions: list[ColumnElement[bool]] = [table.c[name] == value for name, value in equal.items() if value]
    for word in words.replace("_", " ").split():
        people = select(person.c.id).where(person.c.pseudonym.icontains(word, autoescape=True))
        texts = (table.c[name].icontains(word, autoescape=True) for name in ("recipe", "folder"))
        conditions.append(or_(*texts, table.c.person.in_(people)))
    return conditions


ROUTES = [
    Route("/desk", overview, Access.OPERATE, page=True),
    Route("/api/v1/desk/unlisted", put_in, Access.OPERATE, "POST"),
]

"""Who is asked to review something: who may be, that some people are, and what is kept of what they said."""

from __future__ import annotations

import time
from typing import Annotated, Any

from pydantic import Field

from recipe_app.cooking.collaborators import Collaborators
from recipe_app.errors import NotFound
from recipe_app.operations.kinds import Strict
from recipe_app.people.accounts import Visitor
from recipe_app.people.roles import HOLDERS, Access
from recipe_app.review.rounds import ASSIGNED, Review, round_of
from recipe_app.store import tables
from recipe_app.store.app_records import roles_of
from recipe_app.web.judging.api_films import film_folder
from storage.annotation_folder import add_judged

MOST_PEOPLE = 20


class Asked(Strict):
    """Who is to answer."""

    people: Annotated[list[Annotated[str, Field(max_length=40)]], Field(max_length=MOST_PEOPLE)] = Field(
        default_factory=list
    )

    @property
    def each(self) -> list[str]:
        """The people, each once."""
        return list(dict.fromkeys(self.people))


def who_may(tools: Collaborators, access: Access) -> dict[str, str]:
    """Return the people who hold an access, id -> pseudonym, by pseudonym."""
    rows = tools.records.rows(tables.person, order=tables.person.c.pseudonym)
    return {row["id"]: row["pseudonym"] for row in rows if _holds(row, access)}


def ask_people(
    tools: Collaborators, visitor: Visitor, subject: str, review: Review, asked: Asked, access: Access
) -> dict[str, Any]:
    """Ask people to answer about a subject of the log; from then on only they may. Raises NotFound, NotNow."""
    round_of(tools.records.ops(subject), review).require_hidden()
    rows = [tools.records.row(tables.person, one) for one in asked.people]
    if not all(row is not None and _holds(row, access) for row in rows):
        raise NotFound("somebody who was asked may not do this; look at the list of people")
    said = {"what": review.what, "people": asked.each}
    tools.records.note(ASSIGNED, subject, said, actor=visitor.actor)
    return said


def keep_judged(
    tools: Collaborators, visitor: Visitor, recording: str, kind: str, said: dict[str, Any]
) -> int:
    """Keep what people judged, and who accepted it, as a version in the recording's folder; return its number."""
    by = visitor.person["pseudonym"] if visitor.person else ""
    content = {"author": by, "kept_utc_ns": time.time_ns(), **said}
    return add_judged(film_folder(tools, recording), kind, content)


def _holds(row: Any, access: Access) -> bool:
    return bool(HOLDERS[access] & {*roles_of(row)})

"""A round of review: who answers about a recording, their progress, and what they may see of each other.

All kinds of review follow one rule: answers stay hidden from others until all have submitted; then everybody sees
them, they are final, and only somebody who did not answer may rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from kitchensync.operations.errors import NotNow
from kitchensync.operations.session_state import Op
from kitchensync.recipe_app.errors import NotAllowed

ASSIGNED = "assign_review"
"""Kind of the log: who is assigned; the last assignment of a kind of review counts."""
REST_NS = 120 * 10**9
"""Longest gap between two operations that counts as work, nanoseconds."""


@dataclass(frozen=True, slots=True)
class Review:
    """A kind of review: its name, its operations to answer and to submit, and how many people answer."""

    what: str
    edited: str
    submitted: str
    least: int = 2
    asks: Literal["any", "at_least", "exactly"] = "any"


@dataclass(frozen=True, slots=True)
class PersonsWork:
    """One person's progress: whether their answers are submitted, and their working time."""

    is_submitted: bool
    work_ns: int


@dataclass(frozen=True, slots=True)
class Round:
    """The people of a round, in the order they were assigned or started, and whether only they may answer."""

    people: Mapping[str, PersonsWork]
    is_assigned: bool
    least: int
    is_complete: bool
    "Whether enough people have submitted and nobody is still working: everybody sees all answers."

    def for_page(self, actor: str) -> dict[str, Any]:
        """Return what every page shows: whether somebody may answer or rule, who answers, and completeness."""
        is_asked = not self.is_assigned or actor in self.people
        rules = self.is_complete and actor not in self.people
        return {"asked": is_asked, "people": list(self.people), "complete": self.is_complete, "rules": rules}

    def is_still_working(self, actor: str) -> bool:
        """Return whether somebody is assigned and has not submitted."""
        return self.is_assigned and actor in self.people and not self.is_submitted(actor)

    def is_submitted(self, actor: str) -> bool:
        """Return whether somebody has submitted and changed nothing since."""
        return actor in self.people and self.people[actor].is_submitted

    def require_member(self, actor: str) -> None:
        """Raise NotAllowed for somebody who is not assigned if others are."""
        if self.is_assigned and actor not in self.people:
            raise NotAllowed("this recording was given to others to mark; ask a researcher for it")

    def require_open(self, actor: str) -> None:
        """Raise NotAllowed for somebody who is not assigned; NotNow once all have submitted."""
        self.require_member(actor)
        self.require_hidden()

    def require_hidden(self) -> None:
        """Raise NotNow once all have submitted: answers are final when everybody sees them."""
        if self.is_complete:
            raise NotNow("everybody has submitted and sees what others said: no answer changes any more")

    def require_ruler(self, actor: str) -> None:
        """Raise NotNow for somebody who answered, and while answers are missing."""
        self.require_complete()
        if actor in self.people:
            raise NotNow("a judge does not rule: ask somebody else")

    def require_complete(self) -> None:
        """Raise NotNow while answers are missing: until then they are hidden from others."""
        if not self.is_complete:
            raise NotNow(
                "not before {count} people or more were asked and all of them have submitted",
                count=self.least,
            )


def round_of(ops: Iterable[Op], review: Review) -> Round:
    """Return the round of a recording from its operations, in the order of the log.

    It ends when all have submitted: a later change was made with the answers of others in view.
    """
    assigned: list[str] | None = None
    at_ns: dict[str, list[int]] = {}
    last: dict[str, str] = {}
    is_complete = False
    for op in ops:
        if op["kind"] == ASSIGNED and op["body"]["what"] == review.what:
            assigned = op["body"]["people"]
        elif op["kind"] in (review.edited, review.submitted):
            at_ns.setdefault(op["actor"], []).append(op["received_utc_ns"])
            last[op["actor"]] = op["kind"]
        people = [*at_ns] if assigned is None else assigned
        is_complete = len(people) >= review.least and all(
            last.get(person) == review.submitted for person in people
        )
        if is_complete:
            break
    people = [*at_ns] if assigned is None else assigned
    work = {
        person: PersonsWork(
            last.get(person) == review.submitted,
            sum(min(max(0, later - before), REST_NS) for before, later in pairwise(at_ns.get(person, []))),
        )
        for person in people
    }
    return Round(work, assigned is not None, review.least, is_complete)

"""A round of review: who is to answer about a recording, how far they are, what they may see of each other.

Serves every kind of review by one rule: until all have submitted nobody sees the answers of others; then everybody
sees them all, none of them changes any more, and only somebody who gave none rules. A kind says which operations of
the log are its answers; its page and how two people's answers are compared are its own.
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
"""Kind of the log: who is to answer; the last one of a kind of review holds."""
REST_NS = 120 * 10**9
"""Somebody who did nothing for longer was not at work."""


@dataclass(frozen=True, slots=True)
class Review:
    """A kind of review: its name, the operations for an answer and for its end; how many answer and may be asked."""

    what: str
    edited: str
    submitted: str
    least: int = 2
    asks: Literal["any", "at_least", "exactly"] = "any"


@dataclass(frozen=True, slots=True)
class PersonsWork:
    """What one person did: whether they are done and changed nothing since, and how long they worked."""

    is_submitted: bool
    work_ns: int


@dataclass(frozen=True, slots=True)
class Round:
    """The people of a round, in the order they were asked or began, and whether only they may answer."""

    people: Mapping[str, PersonsWork]
    is_assigned: bool
    least: int
    is_complete: bool
    "Whether there are answers enough, and nobody is still at work: everybody sees everything."

    def told(self, actor: str) -> dict[str, Any]:
        """Return what every page says: whether somebody may answer or rule, who answers, and whether all is shown."""
        is_asked = not self.is_assigned or actor in self.people
        rules = self.is_complete and actor not in self.people
        return {"asked": is_asked, "people": list(self.people), "complete": self.is_complete, "rules": rules}

    def is_asked_still(self, actor: str) -> bool:
        """Whether somebody was asked and has not submitted."""
        return self.is_assigned and actor in self.people and not self.is_submitted(actor)

    def is_submitted(self, actor: str) -> bool:
        """Whether somebody has submitted and changed nothing since."""
        return actor in self.people and self.people[actor].is_submitted

    def require_member(self, actor: str) -> None:
        """Raise NotAllowed for somebody who was not asked where others were."""
        if self.is_assigned and actor not in self.people:
            raise NotAllowed("this recording was given to others to mark; ask a researcher for it")

    def require_open(self, actor: str) -> None:
        """Raise NotAllowed for who was not asked; NotNow once all have submitted and everybody sees everything."""
        self.require_member(actor)
        self.require_hidden()

    def require_hidden(self) -> None:
        """Raise NotNow once all have submitted and everybody sees everything."""
        if self.is_complete:
            raise NotNow("everybody has submitted and sees what others said: no answer changes any more")

    def require_ruler(self, actor: str) -> None:
        """Raise NotNow for one of those who answered, and while answers are still to come."""
        self.require_complete()
        if actor in self.people:
            raise NotNow("a judge does not rule: ask somebody else")

    def require_complete(self) -> None:
        """Raise NotNow while answers are still to come: until then nobody sees those of others."""
        if not self.is_complete:
            raise NotNow(
                "not before {count} people or more were asked and all of them have submitted",
                count=self.least,
            )


def round_of(ops: Iterable[Op], review: Review) -> Round:
    """Return the round of a recording from its operations, in the order of the log.

    It ends where all have submitted: whoever changes an answer then has seen those of others.
    """
    asked: list[str] | None = None
    at_ns: dict[str, list[int]] = {}
    last: dict[str, str] = {}
    is_complete = False
    for op in ops:
        if op["kind"] == ASSIGNED and op["body"]["what"] == review.what:
            asked = op["body"]["people"]
        elif op["kind"] in (review.edited, review.submitted):
            at_ns.setdefault(op["actor"], []).append(op["received_utc_ns"])
            last[op["actor"]] = op["kind"]
        people = [*at_ns] if asked is None else asked
        is_complete = len(people) >= review.least and all(last.get(one) == review.submitted for one in people)
        if is_complete:
            break
    people = [*at_ns] if asked is None else asked
    found = {
        one: PersonsWork(
            last.get(one) == review.submitted,
            sum(min(max(0, later - before), REST_NS) for before, later in pairwise(at_ns.get(one, []))),
        )
        for one in people
    }
    return Round(found, asked is not None, review.least, is_complete)

"""Questions with a few possible answers about many items, answered by several people, compared, ruled on.

Errors of a recording are such items; a kind of review states its questions, and whose page shows the items.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, Any

from pydantic import Field

from kitchensync.operations.errors import BadOperation, NotNow
from kitchensync.operations.operation_kinds import Strict
from kitchensync.operations.session_state import Op
from kitchensync.recipe_app.review.rounds import Review

Answers = dict[str, dict[str, str]]
"""item -> question -> answer."""


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """What is asked about each item: question -> possible answers; and the kind of the log that rules."""

    review: Review
    questions: Mapping[str, tuple[str, ...]]
    ruled: str

    def check(self, question: str, answer: str, item: str, items: Iterable[str]) -> None:
        """Raise BadOperation for what was not asked."""
        if item not in items or answer not in self.questions.get(question, ()):
            raise BadOperation("this was not asked; load the page again")


ERRORS = AnswerForm(
    Review("errors", "judge_error", "submit_errors"),
    {
        "verdict": ("happened", "did_not_happen", "unsure"),
        "intent": ("on_purpose", "by_accident", "unsure"),
        "noticed": ("at_once", "later", "by_others", "not", "unsure"),
        "category_fits": ("yes", "no"),
        "subject_present": ("yes", "no"),
    },
    "rule_error",
)
"""Errors of a recording: whether each happened, and whether its words and its category say what did."""


class GivenAnswer(Strict):
    """One answer."""

    item: Annotated[str, Field(max_length=64)]
    question: Annotated[str, Field(max_length=40)]
    answer: Annotated[str, Field(max_length=40)]


def answers_of(ops: Iterable[Op], kind: str, actor: str | None = None) -> Answers:
    """Return the last answers of one person, or of everybody who ruled."""
    return last_given(ops, kind, actor, "question", "answer")


def last_given(
    ops: Iterable[Op], kind: str, actor: str | None, name: str, value: str
) -> dict[str, dict[str, Any]]:
    """Return item -> what was asked -> the last value given; `name` and `value` are keys of an operation's body."""
    last: dict[str, dict[str, Any]] = {}
    for op in ops:
        body = op["body"]
        if op["kind"] == kind and actor in (None, op["actor"]) and name in body:
            last.setdefault(body["item"], {})[body[name]] = body[value]
    return last


def require_none_left(left: int) -> None:
    """Raise NotNow where questions are left."""
    if left:
        raise NotNow("not submitted: {count} questions are not answered yet", count=left)


def open_of(answers: Answers, items: Iterable[str], form: AnswerForm) -> int:
    """Count the questions that are not answered."""
    return sum(question not in answers.get(item, {}) for item in items for question in form.questions)


def agreement_of_answers(
    people: Mapping[str, Answers], items: Sequence[str], form: AnswerForm
) -> dict[str, dict[str, Any]]:
    """Return for each question the share of equal answers and Cohen's kappa, each the mean over pairs of people.

    Items that nobody was asked about before all had submitted do not count.
    """
    answered = [item for item in items if all(item in one for one in people.values())]
    found = {}
    for question in form.questions:
        pairs = [
            [(one[item][question], other[item][question]) for item in answered]
            for one, other in combinations(people.values(), 2)
        ]
        shares = [sum(a == b for a, b in pair) / len(pair) for pair in pairs if pair]
        kappas = [kappa for pair in pairs if (kappa := cohens_kappa(pair)) is not None]
        found[question] = {
            "share": sum(shares) / len(shares) if shares else None,
            "kappa": sum(kappas) / len(kappas) if kappas else None,
        }
    return found


def cohens_kappa(pairs: Sequence[tuple[str, str]]) -> float | None:
    """Return Cohen's kappa of two people's answers; None where chance alone explains them all."""
    if not pairs:
        return None
    same = sum(a == b for a, b in pairs) / len(pairs)
    first, second = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    chance = sum(first[one] * second[one] for one in first) / len(pairs) ** 2
    return (same - chance) / (1 - chance) if chance < 1 else None


def settled(
    people: Mapping[str, Answers], ruled: Answers, items: Iterable[str], form: AnswerForm
) -> tuple[Answers, list[tuple[str, str]]]:
    """Return what everybody says or was ruled, and what is still to be ruled on (item, question)."""
    found: Answers = {}
    disputed = []
    for item in items:
        for question in form.questions:
            said = {one.get(item, {}).get(question, "") for one in people.values()}
            answer = ruled.get(item, {}).get(question) or (said.pop() if len(said) == 1 else "")
            if answer:
                found.setdefault(item, {})[question] = answer
            else:
                disputed.append((item, question))
    return found, disputed

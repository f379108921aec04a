"""Multiple-choice questions about many items, answered by several people, compared and ruled on.

Items are for example the errors of a recording; each kind of review defines its questions.
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
    """The questions about each item, question -> possible answers, and the kind of the log for rulings."""

    review: Review
    questions: Mapping[str, tuple[str, ...]]
    ruled: str

    def check(self, question: str, answer: str, item: str, items: Iterable[str]) -> None:
        """Raise BadOperation for an unknown item, question or answer."""
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
"""Questions about errors: whether each happened, and whether its description and category fit."""


class GivenAnswer(Strict):
    """One answer."""

    item: Annotated[str, Field(max_length=64)]
    question: Annotated[str, Field(max_length=40)]
    answer: Annotated[str, Field(max_length=40)]


def answers_of(ops: Iterable[Op], kind: str, actor: str | None = None) -> Answers:
    """Return the last answers of one person, or of all rulers."""
    return last_answers(ops, kind, actor, "question", "answer")


def last_answers(
    ops: Iterable[Op], kind: str, actor: str | None, name: str, value: str
) -> dict[str, dict[str, Any]]:
    """Return item -> question -> last answer; `name` and `value` are their keys in an operation's body."""
    last: dict[str, dict[str, Any]] = {}
    for op in ops:
        body = op["body"]
        if op["kind"] == kind and actor in (None, op["actor"]) and name in body:
            last.setdefault(body["item"], {})[body[name]] = body[value]
    return last


def require_all_answered(remaining: int) -> None:
    """Raise NotNow if questions remain."""
    if remaining:
        raise NotNow("not submitted: {count} questions are not answered yet", count=remaining)


def count_unanswered(answers: Answers, items: Iterable[str], form: AnswerForm) -> int:
    """Return the number of unanswered questions."""
    return sum(question not in answers.get(item, {}) for item in items for question in form.questions)


def agreement_of_answers(
    people: Mapping[str, Answers], items: Sequence[str], form: AnswerForm
) -> dict[str, dict[str, Any]]:
    """Return for each question the share of equal answers and Cohen's kappa, each the mean over pairs of people.

    Only items that everybody answered count: items can be added after the first people submitted.
    """
    answered = [item for item in items if all(item in answers for answers in people.values())]
    agreement = {}
    for question in form.questions:
        pairs = [
            [(first[item][question], second[item][question]) for item in answered]
            for first, second in combinations(people.values(), 2)
        ]
        shares = [sum(a == b for a, b in pair) / len(pair) for pair in pairs if pair]
        kappas = [kappa for pair in pairs if (kappa := cohens_kappa(pair)) is not None]
        agreement[question] = {
            "share": sum(shares) / len(shares) if shares else None,
            "kappa": sum(kappas) / len(kappas) if kappas else None,
        }
    return agreement


def cohens_kappa(pairs: Sequence[tuple[str, str]]) -> float | None:
    """Return Cohen's kappa of two people's answers; None if the chance agreement is 1 or there are no pairs."""
    if not pairs:
        return None
    same = sum(a == b for a, b in pairs) / len(pairs)
    first, second = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    chance = sum(first[answer] * second[answer] for answer in first) / len(pairs) ** 2
    return (same - chance) / (1 - chance) if chance < 1 else None


def settled(
    people: Mapping[str, Answers], ruled: Answers, items: Iterable[str], form: AnswerForm
) -> tuple[Answers, list[tuple[str, str]]]:
    """Return the agreed or ruled answers, and those that still need a ruling (item, question)."""
    final: Answers = {}
    disputed = []
    for item in items:
        for question in form.questions:
            answers = {by_item.get(item, {}).get(question, "") for by_item in people.values()}
            answer = ruled.get(item, {}).get(question) or (answers.pop() if len(answers) == 1 else "")
            if answer:
                final.setdefault(item, {})[question] = answer
            else:
                disputed.append((item, question))
    return final, disputed

"""What people think of a recording: of each step whether it succeeded, of questions how well they were asked.

Three people decide, five rate, each alone. Nobody rules on an opinion: figures say how far people are of one mind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from statistics import StatisticsError, correlation, mean
from typing import Annotated, Any

from pydantic import Field

from kitchensync.dataset.tables.coherence_examples import StepExample
from kitchensync.operations.operation_kinds import Line, Strict
from kitchensync.recipe_app.review.judged_answers import AnswerForm, Answers, agreement_of_answers
from kitchensync.recipe_app.review.rounds import Review

ASKED = "ask_opinions"
"""Kind of the log: the items of a kind of opinion, asked once."""
SCALE = ("1", "2", "3", "4", "5")
Item = dict[str, Any]
Measured = Annotated[float | None, Field(ge=-1, le=1)]


OPINIONS = {
    "decisions": AnswerForm(
        Review("decisions", "decide_step", "submit_decisions", least=3, asks="at_least"),
        {"success": ("yes", "no"), "confidence": SCALE},
        ruled="",
    ),
    "ratings": AnswerForm(
        Review("ratings", "rate_question", "submit_ratings", least=5, asks="at_least"),
        {"relevance": SCALE, "informativeness": SCALE},
        ruled="",
    ),
}


class QuestionAnswer(Strict):
    """A question that was asked about an example, its answer, and what was measured of it."""

    example_id: Annotated[str, Field(max_length=50)]
    question: Line
    answer: Line
    relevance: Measured = None
    informativeness: Measured = None


def steps_to_decide(examples: Iterable[StepExample]) -> list[Item]:
    """Return an item for each example; `hidden` is what nobody may know who decides."""
    return [
        {
            "item": one["example_id"],
            "text": one["procedure_description"],
            "from_s": one["from"],
            "end_s": one["to"],
            "hidden": {"success": "no" if one["mistake"] else "yes"},
        }
        for one in examples
    ]


def questions_to_rate(steps: Iterable[Item], asked: Iterable[QuestionAnswer]) -> list[Item]:
    """Return an item for each question. Raises KeyError for an example that is not among the steps."""
    by_id = {step["item"]: step for step in steps}
    return [
        by_id[one.example_id]
        | {
            "item": f"{one.example_id}.{number}",
            "question": one.question,
            "answer": one.answer,
            "hidden": {"relevance": one.relevance, "informativeness": one.informativeness},
        }
        for number, one in enumerate(asked)
    ]


def figures(people: Mapping[str, Answers], items: Sequence[Item], form: AnswerForm) -> dict[str, Any]:
    """Return by question how people agree; of decisions how often they are right, of ratings how ranks go together.

    `mean_accuracy` is the mean over people, `majority_accuracy` of what more than half say: a tie is not right.
    `spearman` is the mean over pairs of people, `spearman_measured` of their mean with what was measured.
    """
    found = agreement_of_answers(people, [item["item"] for item in items], form)
    for question, choices in form.questions.items():
        if question == "success":
            right = [
                [one[item["item"]]["success"] == item["hidden"]["success"] for one in people.values()]
                for item in items
            ]
            found[question] |= {
                "mean_accuracy": mean(sum(row) / len(row) for row in right) if right else None,
                "majority_accuracy": mean(2 * sum(row) > len(row) for row in right) if right else None,
            }
        elif choices == SCALE:
            said = [[float(one[item["item"]][question]) for item in items] for one in people.values()]
            pairs = [rho for one, other in combinations(said, 2) if (rho := spearman(one, other)) is not None]
            measured = [item["hidden"].get(question) for item in items]
            together = [
                (mean(row), known) for *row, known in zip(*said, measured, strict=True) if known is not None
            ]
            found[question] |= {
                "spearman": mean(pairs) if pairs else None,
                "spearman_measured": spearman(*map(list, zip(*together, strict=True))) if together else None,
            }
    return found


def spearman(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return the correlation of ranks, equal values sharing theirs; None where one side is all equal."""
    try:
        return correlation(_ranked(first), _ranked(second))
    except StatisticsError:
        return None


def _ranked(values: Sequence[float]) -> list[float]:
    return [sum(one < value for one in values) + sum(one == value for one in values) / 2 for value in values]

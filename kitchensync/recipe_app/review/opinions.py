"""Opinions about a recording: whether each step succeeded, and how good questions are.

Three people decide, five rate, independently. Opinions are not ruled on: figures show how far people agree.
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
"""Kind of the log: the items of a kind of opinion, chosen once."""
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
    """A question about an example, its answer, and its measured scores."""

    example_id: Annotated[str, Field(max_length=50)]
    question: Line
    answer: Line
    relevance: Measured = None
    informativeness: Measured = None


def steps_to_decide(examples: Iterable[StepExample]) -> list[Item]:
    """Return an item for each example; `hidden` is kept from those who decide."""
    return [
        {
            "item": example["example_id"],
            "text": example["procedure_description"],
            "from_s": example["from"],
            "end_s": example["to"],
            "hidden": {"success": "no" if example["mistake"] else "yes"},
        }
        for example in examples
    ]


def questions_to_rate(steps: Iterable[Item], questions: Iterable[QuestionAnswer]) -> list[Item]:
    """Return an item for each question. Raises KeyError for an example that is not among the steps."""
    by_id = {step["item"]: step for step in steps}
    return [
        by_id[question.example_id]
        | {
            "item": f"{question.example_id}.{number}",
            "question": question.question,
            "answer": question.answer,
            "hidden": {"relevance": question.relevance, "informativeness": question.informativeness},
        }
        for number, question in enumerate(questions)
    ]


def figures(people: Mapping[str, Answers], items: Sequence[Item], form: AnswerForm) -> dict[str, Any]:
    """Return the agreement by question, with the accuracy of decisions and the rank correlation of ratings.

    `mean_accuracy` is the mean over people; `majority_accuracy` that of the majority, a tie counting as wrong.
    `spearman` is the mean over pairs of people, `spearman_measured` that of their mean with the measured score.
    """
    by_question = agreement_of_answers(people, [item["item"] for item in items], form)
    for question, choices in form.questions.items():
        if question == "success":
            right = [
                [answers[item["item"]]["success"] == item["hidden"]["success"] for answers in people.values()]
                for item in items
            ]
            by_question[question] |= {
                "mean_accuracy": mean(sum(row) / len(row) for row in right) if right else None,
                "majority_accuracy": mean(2 * sum(row) > len(row) for row in right) if right else None,
            }
        elif choices == SCALE:
            ratings = [
                [float(answers[item["item"]][question]) for item in items] for answers in people.values()
            ]
            rhos = [spearman(first, second) for first, second in combinations(ratings, 2)]
            pairs = [rho for rho in rhos if rho is not None]
            measured = [item["hidden"].get(question) for item in items]
            together = [
                (mean(row), known)
                for *row, known in zip(*ratings, measured, strict=True)
                if known is not None
            ]
            by_question[question] |= {
                "spearman": mean(pairs) if pairs else None,
                "spearman_measured": spearman(*map(list, zip(*together, strict=True))) if together else None,
            }
    return by_question


def spearman(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return Spearman's rank correlation, ties sharing their mean rank; None if one side is constant."""
    try:
        return correlation(_ranked(first), _ranked(second))
    except StatisticsError:
        return None


def _ranked(values: Sequence[float]) -> list[float]:
    return [sum((other < value) + (other == value) / 2 for other in values) for value in values]

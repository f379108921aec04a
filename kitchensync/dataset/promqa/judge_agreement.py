"""Agreement of people who judge questions and their answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations
from statistics import mean
from typing import TypedDict

from kitchensync.dataset.promqa.questions import KeptJudgement


class JudgeAgreement(TypedDict):
    """Agreement about questions of a kind: shares, None if there is nothing to compare."""

    questions: float | None
    "Pairs of judges who agree whether a question is valid."
    answers: float | None
    "Pairs of judges who agree on an answer."
    approved: float | None
    "Judgements that a question is valid."


def agreement_of_judges(
    judged: Iterable[tuple[str, Sequence[KeptJudgement]]],
) -> dict[str, JudgeAgreement]:
    """Return, by kind of question, the share of judge pairs that agree on questions and on answers, and of approvals.

    `judged` has the kind and the judgements of each question. Answers are compared if both judged the question valid.
    """
    questions, answers, approved = (defaultdict[str, list[bool]](list) for _ in range(3))
    for kind, judgements in judged:
        approved[kind] += [judgement["question"] for judgement in judgements]
        for first, second in combinations(judgements, 2):
            questions[kind].append(first["question"] == second["question"])
            if first["question"] and second["question"]:
                answers[kind] += [a == b for a, b in zip(first["answers"], second["answers"], strict=True)]
    return {
        kind: {
            "questions": _share(questions[kind]),
            "answers": _share(answers[kind]),
            "approved": _share(approved[kind]),
        }
        for kind in sorted(approved)
    }


def _share(values: Sequence[bool]) -> float | None:
    return mean(values) if values else None

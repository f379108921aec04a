"""How far people agree who judge questions and their answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations
from statistics import mean

from kitchensync.dataset.promqa.questions import KeptJudgement


def agreement_of_judges(
    judged: Iterable[tuple[str, Sequence[KeptJudgement]]],
) -> dict[str, dict[str, float | None]]:
    """Return by kind of question, of its kind and judges each: equal words on questions, on answers; share approved.

    Shares of pairs of judges, over all questions of a kind; answers are compared where both hold the question valid.
    """
    questions, answers, approved = (defaultdict[str, list[bool]](list) for _ in range(3))
    for kind, people in judged:
        approved[kind] += [one["question"] for one in people]
        for one, other in combinations(people, 2):
            questions[kind].append(one["question"] == other["question"])
            if one["question"] and other["question"]:
                answers[kind] += [x == y for x, y in zip(one["answers"], other["answers"], strict=True)]
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

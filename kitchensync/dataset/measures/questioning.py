"""How a dialog about a step is led: which question is the best, when it ends, what is decided from how sure one is.

An entailment model is whatever gives two scores of a hypothesis by a premise; none is part of this.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Entailment = Callable[[str, str], tuple[float, float]]
"""Scores (logits) of contradiction and entailment of a hypothesis by a premise."""
HYPOTHESIS = 'The procedure "{}" has been successfully completed.'
CANDIDATE = ("prev_p_yes", "prev_p_no")
"""What is known of a question that could be asked: the probability of success after either answer."""
THRESHOLDS = tuple(hundredth / 100 for hundredth in range(1, 100))


def entropy(p: float) -> float:
    """Return the bits of doubt that a probability leaves: 0 at 0 and 1, 1 at one half."""
    return 0.0 if p in (0, 1) else -p * math.log2(p) - (1 - p) * math.log2(1 - p)


def informativeness(p: float) -> float:
    """Return how little doubt an answer leaves, 0 to 1 bit."""
    return 1 - entropy(p)


def success_probability(model: Entailment, text: str, statements: Sequence[str]) -> float:
    """Return how probable success of a step is after what was said; the neutral score is dropped."""
    contradiction, entailment = model(" ".join(statements), HYPOTHESIS.format(text))
    return 1 / (1 + math.exp(max(-700.0, min(700.0, contradiction - entailment))))


def best_question(candidates: Sequence[Mapping[str, float]]) -> int | None:
    """Return the place of the question with the largest relevance x best informativeness; of equals the first."""
    values = [
        abs(one["prev_p_yes"] - one["prev_p_no"]) * max(informativeness(one[key]) for key in CANDIDATE)
        for one in candidates
    ]
    return max(range(len(values)), key=values.__getitem__) if values else None


@dataclass(frozen=True, slots=True)
class StopRule:
    """A dialog ends after ten turns, or two changes below `delta` in a row, or within `epsilon` of certainty."""

    delta: float
    epsilon: float
    most: int = 10

    def iterations(self, success: Sequence[float]) -> int:
        """Return after how many turns a dialog with these probabilities of success ends."""
        small, before = 0, None
        for turn, p in enumerate(success[: self.most], start=1):
            small = small + 1 if before is not None and abs(p - before) < self.delta else 0
            if small == 2 or p < self.epsilon or p > 1 - self.epsilon:
                return turn
            before = p
        return min(len(success), self.most)


def best_threshold(decided: Sequence[tuple[float, int]], *, by_accuracy: bool = False) -> float | None:
    """Return the threshold of least FPR + FNR, of (probability of a mistake, label); None without both labels.

    `by_accuracy`: that of most right decisions, as the paper says.
    """
    wrong = [p for p, label in decided if label]
    right = [p for p, label in decided if not label]
    if not wrong or not right:
        return None

    def errors(threshold: float) -> float:
        false_alarms, missed = sum(p >= threshold for p in right), sum(p < threshold for p in wrong)
        return false_alarms + missed if by_accuracy else false_alarms / len(right) + missed / len(wrong)

    return min(THRESHOLDS, key=errors)

"""How a dialog that decides whether a step was done without a mistake is led, and how good its questions are.

`p` are probabilities, by an entailment model, that the step was successful, were the answer Yes or No; `prev_p` the
same together with the earlier questions and answers. By the published code, not the paper, where both differ. An
entailment model is whatever gives two scores of a hypothesis by a premise; none is part of this.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NotRequired, TypedDict, cast

from kitchensync.dataset.measures.cases import CaseReader

Entailment = Callable[[str, str], tuple[float, float]]
"""Scores (logits) of contradiction and entailment of a hypothesis by a premise."""
HYPOTHESIS = 'The procedure "{}" has been successfully completed.'
CANDIDATE = ("prev_p_yes", "prev_p_no")
"""What is known of a question that could be asked: the probability of success after either answer."""
THRESHOLDS = tuple(hundredth / 100 for hundredth in range(1, 100))


def informativeness(p: float) -> float:
    """Return how little doubt an answer leaves, 0 to 1 bit: 1 - entropy."""
    return 1.0 if p in (0, 1) else 1 - (-p * math.log2(p) - (1 - p) * math.log2(1 - p))


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


UNSURE = 0.1
THRESHOLD = 0.5
PROBABILITIES = ("p_yes", "p_no", "prev_p_yes", "prev_p_no", "vqa")


class Turn(TypedDict):
    """A question that was asked: its answer, Yes or No, and probabilities, 0 to 1."""

    answer: str
    p_yes: float
    p_no: float
    prev_p_yes: float
    prev_p_no: float
    vqa: float
    candidates: NotRequired[list[dict[str, float]]]


class Measures(TypedDict):
    """Measures of a dialog, of each turn, then of the whole."""

    relevance: list[float]
    informativeness: list[float]
    reference_adjusted: list[float]
    individual_informativeness: list[float]
    example_relevance: float
    example_informativeness: float
    information_gain: float
    decision: int
    decision_error: float
    best_questions: NotRequired[list[int | None]]


class Dialog(TypedDict):
    """A dialog about a step; `label` 1 is a mistake, `success` the judged probability after each turn."""

    turns: list[Turn]
    success: list[float]
    label: int
    measures: Measures


def relevance(turn: Turn) -> float:
    """Return how much the answer to a question matters, 0 to 1."""
    return abs(float(turn["prev_p_yes"]) - float(turn["prev_p_no"]))


def is_unsure(turn: Turn, unsure: float = UNSURE) -> bool:
    """Return whether the model that answered had hardly a preference."""
    return abs(float(turn["vqa"]) - 0.5) < unsure


def reference_adjusted(turn: Turn, label: int, unsure: float = UNSURE) -> float:
    """Return the informativeness, negative where the answer speaks against the label, 0 where it is unsure."""
    if is_unsure(turn, unsure):
        return 0.0
    p = float(turn["prev_p_yes"] if turn["answer"] == "Yes" else turn["prev_p_no"])
    return informativeness(p) if (p < THRESHOLD) == bool(label) else -informativeness(p)


def measures(
    turns: Sequence[Turn], success: Sequence[float], label: int, unsure: float, *, corrected: bool = False
) -> Measures:
    """Return every measure of a dialog; `success`: the judged probability after each turn, `label` 1: a mistake.

    `corrected`: as the paper says, unsure turns have no part in `example_informativeness`, 0 where all are.
    """
    relevances = [relevance(turn) for turn in turns]
    adjusted = [reference_adjusted(turn, label, unsure) for turn in turns]
    sure = [
        one for one, turn in zip(adjusted, turns, strict=True) if not (corrected and is_unsure(turn, unsure))
    ]
    mistake = 1 - success[-1]
    return {
        "relevance": relevances,
        "informativeness": [
            informativeness(float(turn["prev_p_yes"] if turn["answer"] == "Yes" else turn["prev_p_no"]))
            for turn in turns
        ],
        "reference_adjusted": adjusted,
        "individual_informativeness": [
            informativeness(float(turn["p_yes"] if turn["answer"] == "Yes" else turn["p_no"]))
            for turn in turns
        ],
        "example_relevance": sum(relevances) / len(relevances),
        "example_informativeness": max(sure, default=0.0),
        "information_gain": informativeness(success[-1]),
        "decision": int(mistake >= THRESHOLD),
        "decision_error": abs(label - mistake),
    }


def answered(
    content: bytes,
    name: str,
    unsure: float = UNSURE,
    *,
    corrected: bool = False,
) -> list[Dialog]:
    """Return the dialogs of a file with `measures` at each. Raises BadGraph.

    A turn that has `candidates` gets the place of the best of them in `best_questions`.
    """
    read = CaseReader(name)
    dialogs = [_checked(read, one, f"[{number}]") for number, one in enumerate(read.cases(content))]
    for dialog in dialogs:
        turns, success = dialog["turns"], dialog["success"]
        found = measures(turns, success, dialog["label"], unsure, corrected=corrected)
        if any("candidates" in turn for turn in turns):
            found["best_questions"] = [best_question(turn.get("candidates", [])) for turn in turns]
        dialog["measures"] = found
    return dialogs


def differ_from_paper(dialogs: Iterable[Dialog], unsure: float = UNSURE) -> int:
    """Count the dialogs in which an unsure turn, counted 0 by the published code, is the maximum."""
    return sum(
        one["measures"]["example_informativeness"] == 0
        and max(one["measures"]["reference_adjusted"]) == 0
        and any(is_unsure(turn, unsure) for turn in one["turns"])
        and not all(is_unsure(turn, unsure) for turn in one["turns"])
        for one in dialogs
    )


def _checked(read: CaseReader, dialog: dict[str, Any], place: str) -> Dialog:
    turns = read.array(dialog.get("turns"), f"{place}: turns")
    success = read.array(dialog.get("success"), f"{place}: success")
    if not turns or len(turns) != len(success):
        raise read.fail(place, f"{len(turns)} turns and {len(success)} values of success; give one a turn")
    if dialog.get("label") not in (0, 1):
        raise read.fail(f"{place}: label", "neither 0 nor 1")
    for number, (turn, judged) in enumerate(zip(turns, success, strict=True)):
        where = f"{place}: turns[{number}]"
        turn = read.object(turn, where)
        if turn.get("answer") not in ("Yes", "No"):
            raise read.fail(f"{where}: answer", "neither Yes nor No")
        for key in PROBABILITIES:
            read.number(turn.get(key), f"{where}: {key}", most=1)
        for one in read.array(turn.get("candidates", []), f"{where}: candidates"):
            one = read.object(one, f"{where}: candidates")
            for key in CANDIDATE:
                read.number(one.get(key), f"{where}: candidates: {key}", most=1)
        read.number(judged, f"{place}: success[{number}]", most=1)
    return cast(Dialog, dialog)


def summary(dialogs: list[Dialog], *, corrected: bool = False) -> dict[str, float | None]:
    """Return the means over dialogs; consistency and verifiability count 0 where the decision is wrong.

    `best_threshold` is where FPR + FNR is least; of several the lowest. `corrected`: as the paper says, a dialog that
    informs against its label adds 0 to verifiability, and that threshold is the one of best accuracy.
    """
    found = [dialog["measures"] for dialog in dialogs]
    right = [dialog["measures"]["decision"] == dialog["label"] for dialog in dialogs]
    sound = [one["example_relevance"] * ok for one, ok in zip(found, right, strict=True)]
    proven = [max(0.0, value) if corrected else value for value in proven_by(dialogs)]
    return {
        "dialogs": len(found),
        "example_relevance": _mean([one["example_relevance"] for one in found]),
        "example_informativeness": _mean([one["example_informativeness"] for one in found]),
        "information_gain": _mean([one["information_gain"] for one in found]),
        "decision_error": _mean([one["decision_error"] for one in found]),
        "accuracy": _mean(right),
        "consistency": _mean(sound),
        "verifiability": _mean(proven),
        "best_threshold": best_threshold(
            [(1 - one["success"][-1], one["label"]) for one in dialogs], by_accuracy=corrected
        ),
    }


def proven_by(dialogs: Sequence[Dialog]) -> list[float]:
    """Return what each dialog adds to verifiability: less than 0 where it informs against its label."""
    return [
        found["example_relevance"] * found["example_informativeness"] * (found["decision"] == one["label"])
        for one in dialogs
        for found in [one["measures"]]
    ]


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None

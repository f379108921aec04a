"""Measures of a dialog that decides whether a step was done without a mistake, and of its questions.

`p` are probabilities of success of the step, by an entailment model, if the answer is Yes or No; `prev_p` the same
together with the earlier questions and answers. If the published code and the paper differ, this follows the code. An
entailment model is any function that returns two scores of a hypothesis by a premise; none is included.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict, cast

from kitchensync.dataset.measures.cases import CaseReader

Entailment = Callable[[str, str], tuple[float, float]]
"""Scores (logits) of contradiction and entailment of a hypothesis by a premise."""
HYPOTHESIS = 'The procedure "{}" has been successfully completed.'
CANDIDATE = ("prev_p_yes", "prev_p_no")
"""Keys of a possible question: the probability of success after either answer."""
THRESHOLDS = tuple(hundredth / 100 for hundredth in range(1, 100))


def informativeness(p: float) -> float:
    """Return 1 - entropy of a probability, 0 to 1 bit."""
    return 1.0 if p in (0, 1) else 1 - (-p * math.log2(p) - (1 - p) * math.log2(1 - p))


def success_probability(model: Entailment, text: str, statements: Sequence[str]) -> float:
    """Return the probability of success of a step given the statements; the neutral score is dropped."""
    contradiction, entailment = model(" ".join(statements), HYPOTHESIS.format(text))
    return 1 / (1 + math.exp(max(-700.0, min(700.0, contradiction - entailment))))


def best_question(candidates: Sequence[Mapping[str, float]]) -> int | None:
    """Return the place of the question with the largest relevance x best informativeness; on a tie the first."""
    values = [
        abs(c["prev_p_yes"] - c["prev_p_no"]) * max(informativeness(c[key]) for key in CANDIDATE)
        for c in candidates
    ]
    return max(range(len(values)), key=values.__getitem__) if values else None


def best_threshold(decided: Sequence[tuple[float, int]], *, by_accuracy: bool = False) -> float | None:
    """Return the threshold with the least FPR + FNR of (probability of a mistake, label); None without both labels.

    `by_accuracy`: the threshold with most right decisions, as in the paper.
    """
    mistakes = [p for p, label in decided if label]
    successes = [p for p, label in decided if not label]
    if not mistakes or not successes:
        return None

    def errors(threshold: float) -> float:
        false_alarms, missed = sum(p >= threshold for p in successes), sum(p < threshold for p in mistakes)
        if by_accuracy:
            return false_alarms + missed
        return false_alarms / len(successes) + missed / len(mistakes)

    return min(THRESHOLDS, key=errors)


UNSURE = 0.1  # as in the published code, with which results are compared
THRESHOLD = 0.5
PROBABILITIES = ("p_yes", "p_no", "prev_p_yes", "prev_p_no", "vqa")


class Turn(TypedDict):
    """A question with its answer, Yes or No, and probabilities, 0 to 1."""

    answer: str
    p_yes: float
    p_no: float
    prev_p_yes: float
    prev_p_no: float
    vqa: float
    candidates: NotRequired[list[dict[str, float]]]


class Measures(TypedDict):
    """Measures of a dialog: lists by turn, then values of the whole dialog."""

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
    """A dialog about a step; `label` 1 is a mistake, `success` the probability after each turn."""

    turns: list[Turn]
    success: list[float]
    label: int
    measures: Measures


def relevance(turn: Turn) -> float:
    """Return the influence of the answer to a question, 0 to 1."""
    return abs(float(turn["prev_p_yes"]) - float(turn["prev_p_no"]))


def is_unsure(turn: Turn, unsure: float = UNSURE) -> bool:
    """Return whether the probability of the answer is close to one half."""
    return abs(float(turn["vqa"]) - 0.5) < unsure


def reference_adjusted(turn: Turn, label: int, unsure: float = UNSURE) -> float:
    """Return the informativeness, negative if the answer contradicts the label, 0 if it is unsure."""
    if is_unsure(turn, unsure):
        return 0.0
    p = _of_answer(turn, "prev_p")
    return informativeness(p) if (p < THRESHOLD) == bool(label) else -informativeness(p)


def _of_answer(turn: Turn, key: Literal["p", "prev_p"]) -> float:
    """Return the probability of success after the answer of a turn."""
    if key == "p":
        return float(turn["p_yes"] if turn["answer"] == "Yes" else turn["p_no"])
    return float(turn["prev_p_yes"] if turn["answer"] == "Yes" else turn["prev_p_no"])


def measures(
    turns: Sequence[Turn], success: Sequence[float], label: int, unsure: float, *, corrected: bool = False
) -> Measures:
    """Return every measure of a dialog; `success` is the probability after each turn, `label` 1 a mistake.

    `corrected`: as in the paper, `example_informativeness` ignores unsure turns, and is 0 if all are unsure.
    """
    relevances = [relevance(turn) for turn in turns]
    adjusted = [reference_adjusted(turn, label, unsure) for turn in turns]
    sure = [
        value
        for value, turn in zip(adjusted, turns, strict=True)
        if not (corrected and is_unsure(turn, unsure))
    ]
    mistake = 1 - success[-1]
    return {
        "relevance": relevances,
        "informativeness": [informativeness(_of_answer(turn, "prev_p")) for turn in turns],
        "reference_adjusted": adjusted,
        "individual_informativeness": [informativeness(_of_answer(turn, "p")) for turn in turns],
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
    """Return the dialogs of a file, each with `measures`. Raises BadGraph.

    If turns have `candidates`, `best_questions` has the place of the best.
    """
    read = CaseReader(name)
    dialogs = [_checked(read, case, f"[{number}]") for number, case in enumerate(read.cases(content))]
    for dialog in dialogs:
        turns, success = dialog["turns"], dialog["success"]
        values = measures(turns, success, dialog["label"], unsure, corrected=corrected)
        if any("candidates" in turn for turn in turns):
            values["best_questions"] = [best_question(turn.get("candidates", [])) for turn in turns]
        dialog["measures"] = values
    return dialogs


def differ_from_paper(dialogs: Iterable[Dialog], unsure: float = UNSURE) -> int:
    """Count the dialogs in which an unsure turn, counted 0 by the published code, is the maximum."""
    count = 0
    for dialog in dialogs:
        unsure_turns = [is_unsure(turn, unsure) for turn in dialog["turns"]]
        values = dialog["measures"]
        is_zero = values["example_informativeness"] == 0 and max(values["reference_adjusted"]) == 0
        count += is_zero and any(unsure_turns) and not all(unsure_turns)
    return count


def _checked(read: CaseReader, dialog: dict[str, Any], place: str) -> Dialog:
    turns = read.array(dialog.get("turns"), f"{place}: turns")
    success = read.array(dialog.get("success"), f"{place}: success")
    if not turns or len(turns) != len(success):
        raise read.fail(place, f"{len(turns)} turns and {len(success)} values of success; give one per turn")
    if dialog.get("label") not in (0, 1):
        raise read.fail(f"{place}: label", "neither 0 nor 1")
    for number, (turn, judged) in enumerate(zip(turns, success, strict=True)):
        where = f"{place}: turns[{number}]"
        turn = read.object(turn, where)
        if turn.get("answer") not in ("Yes", "No"):
            raise read.fail(f"{where}: answer", "neither Yes nor No")
        for key in PROBABILITIES:
            read.number(turn.get(key), f"{where}: {key}", most=1)
        for candidate in read.array(turn.get("candidates", []), f"{where}: candidates"):
            candidate = read.object(candidate, f"{where}: candidates")
            for key in CANDIDATE:
                read.number(candidate.get(key), f"{where}: candidates: {key}", most=1)
        read.number(judged, f"{place}: success[{number}]", most=1)
    return cast(Dialog, dialog)


class DialogMeans(TypedDict):
    """Means over dialogs, None without any; consistency and verifiability count 0 if the decision is wrong."""

    dialogs: int
    example_relevance: float | None
    example_informativeness: float | None
    information_gain: float | None
    decision_error: float | None
    accuracy: float | None
    consistency: float | None
    verifiability: float | None
    best_threshold: float | None
    "Of the least FPR + FNR; on a tie the lowest."


def summary(dialogs: list[Dialog], *, corrected: bool = False) -> DialogMeans:
    """Return the means over dialogs.

    `corrected`: as in the paper, negative values of verifiability count 0, and the threshold is that of the best
    accuracy.
    """
    values = [dialog["measures"] for dialog in dialogs]
    right = [dialog["measures"]["decision"] == dialog["label"] for dialog in dialogs]
    consistency = [v["example_relevance"] * is_right for v, is_right in zip(values, right, strict=True)]
    verifiability = [max(0.0, value) if corrected else value for value in verifiability_of(dialogs)]
    return {
        "dialogs": len(values),
        "example_relevance": _mean([v["example_relevance"] for v in values]),
        "example_informativeness": _mean([v["example_informativeness"] for v in values]),
        "information_gain": _mean([v["information_gain"] for v in values]),
        "decision_error": _mean([v["decision_error"] for v in values]),
        "accuracy": _mean(right),
        "consistency": _mean(consistency),
        "verifiability": _mean(verifiability),
        "best_threshold": best_threshold(
            [(1 - dialog["success"][-1], dialog["label"]) for dialog in dialogs], by_accuracy=corrected
        ),
    }


def verifiability_of(dialogs: Sequence[Dialog]) -> list[float]:
    """Return the verifiability of each dialog: negative if it informs against its label."""
    result = []
    for dialog in dialogs:
        values, is_right = dialog["measures"], dialog["measures"]["decision"] == dialog["label"]
        result.append(values["example_relevance"] * values["example_informativeness"] * is_right)
    return result


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None

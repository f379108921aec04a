"""How well spans of time that a model names agree with the true ones, each list taken as one set of moments.

IoU = |P n T| / |P u T|, IoP = |P n T| / |P|, IoG = |P n T| / |T|, each 0 where its denominator is 0. Spans of one
list that overlap count once, as in the published scorer and not in the printed equation. A span that does not end
after it begins is dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NotRequired, TypedDict, cast

from kitchensync.dataset.measures.cases import CaseReader

Span = tuple[float, float]


class SpanAgreement(TypedDict):
    """How well spans agree, and how many predicted ones were `dropped`."""

    iou: float
    iop: float
    iog: float
    dropped: int


class Prediction(TypedDict):
    """The spans that a model or a person names; `answer` once they were measured."""

    spans: list[list[float]]
    answer: NotRequired[SpanAgreement]


class SpanCase(TypedDict):
    """A question with the true spans, seconds, and those of each model."""

    truth: list[list[float]]
    predictions: dict[str, Prediction]
    question_id: NotRequired[str]
    iou: NotRequired[float]


def merged(spans: Iterable[Span]) -> list[Span]:
    """Return valid spans in order of time, those that touch or overlap joined."""
    joined: list[Span] = []
    for start, end in sorted(span for span in spans if span[1] > span[0]):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


def length(spans: Iterable[Span]) -> float:
    """Return the seconds that spans of one merged list cover."""
    return sum(end - start for start, end in spans)


def common(first: Sequence[Span], second: Sequence[Span]) -> list[Span]:
    """Return the spans that two merged lists share."""
    found = ((max(a, c), min(b, d)) for a, b in first for c, d in second)
    return [span for span in found if span[1] > span[0]]


def agreement(predicted: Sequence[Span], true: Sequence[Span]) -> SpanAgreement:
    """Compare two lists of spans."""
    ours, theirs = merged(predicted), merged(true)
    shared = length(common(ours, theirs))
    either = length(merged([*ours, *theirs]))
    iou, iop, iog = (shared / whole if whole else 0.0 for whole in (either, length(ours), length(theirs)))
    return {"iou": iou, "iop": iop, "iog": iog, "dropped": sum(end <= start for start, end in predicted)}


def answered(content: bytes, name: str) -> list[SpanCase]:
    """Return the cases of a file with `answer` at each prediction. Raises BadGraph."""
    read = CaseReader(name)
    cases = read.cases(content)
    for number, case in enumerate(cases):
        place = f"[{number}]"
        true = _spans(read, case.get("truth"), f"{place}: truth")
        for model, body in read.object(case.get("predictions"), f"{place}: predictions").items():
            where = f"{place}: predictions: {model}"
            spans = _spans(read, read.object(body, where).get("spans"), f"{where}: spans")
            body["answer"] = agreement(spans, true)
    return cast(list[SpanCase], cases)


def overlapping(cases: Iterable[SpanCase]) -> int:
    """Count the lists whose spans overlap each other: the printed equation, without merging, differs there."""
    lists = [
        one for case in cases for one in (case["truth"], *(b["spans"] for b in case["predictions"].values()))
    ]
    valid = ([(start, end) for start, end in one if end > start] for one in lists)
    return sum(length(merged(spans)) < length(spans) - 1e-9 for spans in valid)


def _spans(read: CaseReader, value: Any, place: str) -> list[Span]:
    pairs = [read.array(one, place) for one in read.array(value, place)]
    if wrong := next((pair for pair in pairs if len(pair) != 2), None):
        raise read.fail(place, f"a span of {len(wrong)} numbers; give start and end")
    return [(read.number(start, place), read.number(end, place)) for start, end in pairs]


def summary(cases: list[SpanCase]) -> dict[str, dict[str, float]]:
    """Return the means by model, with how many samples they are over and how many spans were dropped."""
    answers: dict[str, list[SpanAgreement]] = {}
    for case in cases:
        for model, body in case["predictions"].items():
            answers.setdefault(model, []).append(body["answer"])
    return {
        model: {
            "samples": len(found),
            "iou": sum(one["iou"] for one in found) / len(found),
            "iop": sum(one["iop"] for one in found) / len(found),
            "iog": sum(one["iog"] for one in found) / len(found),
            "dropped": sum(one["dropped"] for one in found),
        }
        for model, found in answers.items()
    }

"""Agreement of predicted and true time spans, each list taken as one set of moments.

IoU = |P n T| / |P u T|, IoP = |P n T| / |P|, IoG = |P n T| / |T|, each 0 if its denominator is 0. Overlapping spans
of one list count once, as in the published scorer but not in the printed equation. A span that does not end after it
begins is dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NotRequired, TypedDict, cast

from kitchensync.dataset.measures.cases import CaseReader

Span = tuple[float, float]


class SpanAgreement(TypedDict):
    """Agreement of two lists of spans, and the number of `dropped` predicted spans."""

    iou: float
    iop: float
    iog: float
    dropped: int


class Prediction(TypedDict):
    """Spans of a model or a person; `answer` after measuring."""

    spans: list[list[float]]
    answer: NotRequired[SpanAgreement]


class SpanCase(TypedDict):
    """A question with the true spans, seconds, and the prediction of each model."""

    truth: list[list[float]]
    predictions: dict[str, Prediction]
    question_id: NotRequired[str]
    iou: NotRequired[float]


def merged(spans: Iterable[Span]) -> list[Span]:
    """Return valid spans in order of time, with touching and overlapping spans joined."""
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
    """Return the intersection of two merged lists."""
    overlaps = ((max(a, c), min(b, d)) for a, b in first for c, d in second)
    return [span for span in overlaps if span[1] > span[0]]


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
    """Count the lists with overlapping spans: the printed equation, without merging, differs for them."""
    count = 0
    for case in cases:
        for listed in (case["truth"], *(body["spans"] for body in case["predictions"].values())):
            spans = [(start, end) for start, end in listed if end > start]
            count += length(merged(spans)) < length(spans) - 1e-9
    return count


def _spans(read: CaseReader, value: Any, place: str) -> list[Span]:
    pairs = [read.array(span, place) for span in read.array(value, place)]
    if wrong := next((pair for pair in pairs if len(pair) != 2), None):
        raise read.fail(place, f"a span of {len(wrong)} numbers; give start and end")
    return [(read.number(start, place), read.number(end, place)) for start, end in pairs]


class SpanMeans(TypedDict):
    """Means of a model over its samples."""

    samples: int
    iou: float
    iop: float
    iog: float
    dropped: int
    "Predicted spans that do not end after they begin."


def summary(cases: list[SpanCase]) -> dict[str, SpanMeans]:
    """Return the means by model, with the number of samples and of dropped spans."""
    answers: dict[str, list[SpanAgreement]] = {}
    for case in cases:
        for model, body in case["predictions"].items():
            answers.setdefault(model, []).append(body["answer"])
    return {
        model: {
            "samples": len(of_model),
            "iou": sum(answer["iou"] for answer in of_model) / len(of_model),
            "iop": sum(answer["iop"] for answer in of_model) / len(of_model),
            "iog": sum(answer["iog"] for answer in of_model) / len(of_model),
            "dropped": sum(answer["dropped"] for answer in of_model),
        }
        for model, of_model in answers.items()
    }

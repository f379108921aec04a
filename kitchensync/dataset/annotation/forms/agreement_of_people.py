"""Agreement of two people about step times: boundaries, overlap, and labels at each moment."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import TypedDict

Span = Sequence[float]
Spans = Mapping[str, Sequence[Span]]


class BoundaryError(TypedDict):
    """Difference of two people at the start or end of a step, seconds."""

    label: str
    boundary: str
    error_s: float


class SpanErrors(TypedDict):
    """Agreement of two annotations, times in seconds; None if there is nothing to compare."""

    labels: int
    labels_on_both_sides: int
    boundaries: int
    boundary_error_median_s: float | None
    boundary_error_p95_s: float | None
    boundary_error_max_s: float | None
    mean_iou: float | None
    kappa: float | None
    by_boundary: list[BoundaryError]


def agreement(first: Spans, second: Spans, duration_s: float | None = None) -> SpanErrors:
    """Compare two annotations, label -> spans [from, to) in seconds, of a video of `duration_s`.

    Boundaries are compared if both have one span of a label: median, 95th percentile (nearest rank), largest. The
    overlap is the mean over all labels of either side. `kappa` is Cohen's kappa of the set of labels at each moment.
    """
    labels = sorted({*first, *second})
    shared = [label for label in labels if first.get(label) and second.get(label)]
    boundaries: list[BoundaryError] = [
        {"label": label, "boundary": name, "error_s": abs(x - y)}
        for label in shared
        if len(first[label]) == len(second[label]) == 1
        for name, x, y in zip(("start", "end"), first[label][0], second[label][0], strict=True)
    ]
    errors = sorted(boundary["error_s"] for boundary in boundaries)
    overlaps = [_overlap(first.get(label, ()), second.get(label, ())) for label in labels]
    return {
        "labels": len(labels),
        "labels_on_both_sides": len(shared),
        "boundaries": len(errors),
        "boundary_error_median_s": median(errors) if errors else None,
        "boundary_error_p95_s": errors[-(-95 * len(errors) // 100) - 1] if errors else None,
        "boundary_error_max_s": errors[-1] if errors else None,
        "mean_iou": sum(overlaps) / len(overlaps) if overlaps else None,
        "kappa": kappa(first, second, duration_s),
        "by_boundary": boundaries,
    }


def _overlap(first: Sequence[Span], second: Sequence[Span]) -> float:
    """Return intersection divided by union; overlapping spans of one side count once."""
    both = either = 0.0
    for start, end, here in _moments([first, second]):
        both += (end - start) * (len(here) == 2)
        either += (end - start) * bool(here)
    return both / either if either else 0.0


def kappa(first: Spans, second: Spans, duration_s: float | None) -> float | None:
    """Return Cohen's kappa of the labels at each moment from 0 to the end; None if chance agreement is 1.

    No step, and each combination of simultaneous steps, are labels too. Without a duration the last span is the end.
    """
    names = [(0, label) for label in first] + [(1, label) for label in second]
    lists = [(first, second)[side][label] for side, label in names]
    ends = [span[1] for spans in lists for span in spans]
    whole = max(ends, default=0.0) if duration_s is None else duration_s
    same = 0.0
    share: tuple[dict[frozenset[str], float], ...] = (defaultdict(float), defaultdict(float))
    for start, end, here in _moments([*lists, [(0.0, whole)]]):
        end = min(end, whole)
        if end <= start:
            continue
        sides = [frozenset(names[k][1] for k in here if k < len(names) and names[k][0] == s) for s in (0, 1)]
        same += (end - start) * (sides[0] == sides[1])
        for side, times in zip(sides, share, strict=True):
            times[side] += end - start
    if not whole:
        return None
    chance = sum(share[0][labels] * share[1].get(labels, 0.0) for labels in share[0]) / whole**2
    return (same / whole - chance) / (1 - chance) if chance < 1 - 1e-12 else None


def _moments(lists: Sequence[Iterable[Span]]) -> Iterator[tuple[float, float, frozenset[int]]]:
    """Cut time at the ends of all spans; yield each piece with the numbers of the lists that cover it."""
    changes = [
        (at, step, number)
        for number, spans in enumerate(lists)
        for span in spans
        for at, step in ((span[0], 1), (span[1], -1))
    ]
    inside, before = Counter[int](), 0.0
    for at, step, number in sorted(changes):
        if at > before and (here := frozenset(n for n, count in inside.items() if count > 0)):
            yield before, at, here
        inside[number] += step
        before = at

"""The regions of an export, or marks in seconds, as spans of steps; what cannot count is named, with its place."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypedDict

from kitchensync.dataset.annotation.forms.agreement_of_people import SpanErrors, agreement
from kitchensync.dataset.annotation.forms.frame_times import region_of, span_s
from kitchensync.dataset.annotation.forms.server_export import Annotation, Task, tasks_of
from kitchensync.task_graphs.errors import BadGraph
from kitchensync.task_graphs.formats.strict_json import Reader

Spans = dict[str, list[tuple[float, float]]]
"""label -> [from, to) in seconds, in time order."""
TIMELINE = "timelinelabels"
BOX = "box on the timeline"
"""The finding of a region that the server lists a second time, as a label of the timeline: it marks no time."""


@dataclass(frozen=True, slots=True)
class Uncounted:
    """What does not count in an annotation, or what one lacks: a word, and where."""

    word: str
    where: str


@dataclass(frozen=True, slots=True)
class MarkedFilm:
    """What regions are held to: pictures a second, how many, and the labels there are (None: not known)."""

    fps: Fraction
    frames: int | None
    labels: frozenset[str] | None


class SaidFinding(TypedDict):
    """What does not count, as JSON."""

    word: str
    where: str


class SaidSteps(TypedDict):
    """What was marked in a film, as JSON; seconds."""

    annotators: dict[str, Spans]
    prediction: Spans
    problems: list[str]
    findings: list[SaidFinding]
    ignored_annotations: list[int]
    empty_annotations: list[int]
    agreement: SpanErrors | None


@dataclass
class Steps:
    """What was marked in one film: spans by person, those of the prediction, and what was left out."""

    annotators: dict[str, Spans] = field(default_factory=dict)
    annotation_of: dict[str, int] = field(default_factory=dict)
    "Which annotation of a person counts."
    prediction: Spans = field(default_factory=dict)
    findings: list[Uncounted] = field(default_factory=list)
    ignored: list[int] = field(default_factory=list)
    empty: list[int] = field(default_factory=list)

    def said(self, duration_s: float | None) -> SaidSteps:
        """Return it as an object of JSON."""
        people = list(self.annotators.values())
        return {
            "annotators": self.annotators,
            "prediction": self.prediction,
            "problems": sorted(one.word for one in self.findings),
            "findings": [{"word": one.word, "where": one.where} for one in self.findings],
            "ignored_annotations": self.ignored,
            "empty_annotations": self.empty,
            "agreement": agreement(people[0], people[1], duration_s) if len(people) > 1 else None,
        }


def read_steps(task: Task, film: MarkedFilm, read: Reader) -> Steps:
    """Read the spans of one task. Raises BadGraph."""
    steps = Steps()
    for draft in task.drafts:
        steps.findings.append(
            Uncounted(
                "never submitted", f"{draft.place} by {draft.by or 'somebody'}, {draft.regions} regions"
            )
        )
    if task.prediction is not None:
        steps.prediction = _spans(task.prediction, film, steps.findings, read)
    for one in task.annotations:
        if one.was_cancelled:
            steps.ignored.append(one.id)
        elif not one.result:
            steps.empty.append(one.id)
        else:
            if one.by in steps.annotators:  # the later one counts
                steps.findings.append(Uncounted("two annotations by one person", one.place))
                steps.ignored.append(steps.annotation_of[one.by])
            spans = _spans(one, film, steps.findings, read)
            steps.annotators[one.by], steps.annotation_of[one.by] = spans, one.id
            if any(entry.get("type") == TIMELINE for entry in one.result):
                lacking = [label for label in steps.prediction if label not in spans]
                steps.findings += [
                    Uncounted("step without region", f"{one.place} {label}") for label in lacking
                ]
    return steps


def _spans(one: Annotation, film: MarkedFilm, findings: list[Uncounted], read: Reader) -> Spans:
    marked = marked_frames(one, film, findings, read)
    return {label: [span_s(*frames, film.fps) for frames in marked[label]] for label in sorted(marked)}


def marked_frames(
    one: Annotation, film: MarkedFilm, findings: list[Uncounted], read: Reader
) -> dict[str, list[tuple[int, int]]]:
    """Return label -> first and last frame of the regions that count, in time order; add what does not count."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for entry in one.result:
        if entry.get("type") != TIMELINE:
            continue
        place = f"{one.place} region {entry.get('id', '?')}"
        try:
            value = read.object(entry.get("value"), place)
            labels = [read.text(label, place) for label in read.array(value.get(TIMELINE, []), place)]
            listed = [read.object(found, place) for found in read.array(value.get("ranges") or [], place)]
            ranges = [
                (_frame(found.get("start"), place, read), _frame(found.get("end"), place, read))
                for found in listed
                if found.get("enabled") is not False
            ]
        except BadGraph:
            findings.append(Uncounted("unreadable region", place))
            continue
        if not listed:
            findings.append(Uncounted(BOX if "sequence" in value else "region without ranges", place))
        for start, end in ranges:
            if word := _wrong(start, end, labels, film):
                findings.append(Uncounted(word, place))
                continue
            for label in labels:
                spans.setdefault(label, []).append((start, end))
    return {label: sorted(found) for label, found in spans.items()}


def _frame(value: Any, place: str, read: Reader) -> int:
    return read.whole(int(value) if isinstance(value, float) and value.is_integer() else value, place)


def _wrong(start: int, end: int, labels: list[str], film: MarkedFilm) -> str:
    """Return why a region does not count; nothing where it does."""
    if not labels:
        return "region without label"
    if film.labels is not None and not film.labels.issuperset(labels):
        return "unknown label"
    if end < start:
        return "end before start"
    if start < 1:
        return "region before the first frame"
    return "region past the end" if film.frames is not None and end > film.frames else ""


NOBODY = "unknown"
"""Who marked what a file names nobody for."""


@dataclass(frozen=True, slots=True)
class TimedMark:
    """One span of a film with its label, and who marked it."""

    label: str
    start_ns: int
    end_ns: int
    by: str
    place: str


@dataclass(frozen=True)
class Marked:
    """All marks of one recording; `proxy_sha256` where the file says which film they are of.

    `untimed` names the annotations that have no time.
    """

    recording: str
    marks: tuple[TimedMark, ...]
    proxy_sha256: str | None = None
    untimed: tuple[str, ...] = ()


def steps_of(marked: Marked, labels: frozenset[str] | None) -> Steps:
    """Return the spans by person, and what does not count."""
    steps = Steps()
    steps.findings += [Uncounted("no time", place) for place in marked.untimed]
    for one in sorted(marked.marks, key=lambda mark: mark.start_ns):
        mine = steps.annotators.setdefault(one.by, {})
        if not one.label:
            steps.findings.append(Uncounted("region without label", one.place))
        elif labels is not None and one.label not in labels:
            steps.findings.append(Uncounted("unknown label", one.place))
        elif one.end_ns < one.start_ns:
            steps.findings.append(Uncounted("end before start", one.place))
        else:
            mine.setdefault(one.label, []).append((one.start_ns / 1e9, one.end_ns / 1e9))
    return steps


def task_of_marks(marked: Marked, fps: Fraction, frames: int) -> Task:
    """Return marks as a task: one annotation a person, numbered from 1 in the order of their names."""
    regions: dict[str, list[dict[str, object]]] = {one.by: [] for one in marked.marks}
    for one in marked.marks:
        start, end = region_of(Fraction(one.start_ns, 10**9), Fraction(one.end_ns, 10**9), fps)
        end = end if one.end_ns >= one.start_ns else start - 1
        value = {"ranges": [{"start": start, "end": end}], TIMELINE: [one.label] if one.label else []}
        ns = [one.start_ns, one.end_ns]
        regions[one.by].append({"id": one.place, "type": TIMELINE, "value": value, "ns": ns})
    annotations = [
        {"id": number, "completed_by": person, "result": regions[person]}
        for number, person in enumerate(sorted(regions), 1)
    ]
    data = {
        "recording_id": marked.recording,
        "fps": float(fps),
        "frames": frames,
        "proxy_sha256": marked.proxy_sha256,
    }
    (task,) = tasks_of([{"data": data, "annotations": annotations}], marked.recording)
    return task

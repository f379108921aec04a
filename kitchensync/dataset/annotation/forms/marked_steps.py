"""Convert the regions of an export, or marks in seconds, to spans of steps; report invalid regions."""

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
"""Finding for an entry that the server adds for a label of the timeline: it marks no time."""


@dataclass(frozen=True, slots=True)
class Uncounted:
    """A finding in an annotation: an invalid or missing region, and its place."""

    word: str
    where: str


@dataclass(frozen=True, slots=True)
class MarkedFilm:
    """Limits of regions: frame rate, frame count, and the existing labels (None: not known)."""

    fps: Fraction
    frames: int | None
    labels: frozenset[str] | None


class FindingJson(TypedDict):
    """A finding as JSON."""

    word: str
    where: str


class StepsJson(TypedDict):
    """The marked steps of a video as JSON; seconds."""

    annotators: dict[str, Spans]
    prediction: Spans
    problems: list[str]
    findings: list[FindingJson]
    ignored_annotations: list[int]
    empty_annotations: list[int]
    agreement: SpanErrors | None


@dataclass
class Steps:
    """The marked steps of one video: spans by person, the prediction, findings, and ignored annotations."""

    annotators: dict[str, Spans] = field(default_factory=dict)
    annotation_of: dict[str, int] = field(default_factory=dict)
    "Person -> id of the annotation that counts."
    prediction: Spans = field(default_factory=dict)
    findings: list[Uncounted] = field(default_factory=list)
    ignored: list[int] = field(default_factory=list)
    empty: list[int] = field(default_factory=list)

    def as_json(self, duration_s: float | None) -> StepsJson:
        """Return the steps as JSON, with the agreement of the first two people."""
        people = list(self.annotators.values())
        return {
            "annotators": self.annotators,
            "prediction": self.prediction,
            "problems": sorted(finding.word for finding in self.findings),
            "findings": [{"word": finding.word, "where": finding.where} for finding in self.findings],
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
    for annotation in task.annotations:
        if annotation.was_cancelled:
            steps.ignored.append(annotation.id)
        elif not annotation.result:
            steps.empty.append(annotation.id)
        else:
            person = annotation.by
            if person in steps.annotators:  # the later annotation counts
                steps.findings.append(Uncounted("two annotations by one person", annotation.place))
                steps.ignored.append(steps.annotation_of[person])
            spans = _spans(annotation, film, steps.findings, read)
            steps.annotators[person], steps.annotation_of[person] = spans, annotation.id
            if any(entry.get("type") == TIMELINE for entry in annotation.result):
                steps.findings += [
                    Uncounted("step without region", f"{annotation.place} {label}")
                    for label in steps.prediction
                    if label not in spans
                ]
    return steps


def _spans(annotation: Annotation, film: MarkedFilm, findings: list[Uncounted], read: Reader) -> Spans:
    marked = marked_frames(annotation, film, findings, read)
    return {label: [span_s(*frames, film.fps) for frames in marked[label]] for label in sorted(marked)}


def marked_frames(
    annotation: Annotation, film: MarkedFilm, findings: list[Uncounted], read: Reader
) -> dict[str, list[tuple[int, int]]]:
    """Return label -> first and last frame of each valid region, in time order; append findings."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for entry in annotation.result:
        if entry.get("type") != TIMELINE:
            continue
        place = f"{annotation.place} region {entry.get('id', '?')}"
        try:
            value = read.object(entry.get("value"), place)
            labels = [read.text(label, place) for label in read.array(value.get(TIMELINE, []), place)]
            listed = [read.object(row, place) for row in read.array(value.get("ranges") or [], place)]
            ranges = [
                (_frame(row.get("start"), place, read), _frame(row.get("end"), place, read))
                for row in listed
                if row.get("enabled") is not False
            ]
        except BadGraph:
            findings.append(Uncounted("unreadable region", place))
            continue
        if not listed:
            findings.append(Uncounted(BOX if "sequence" in value else "region without ranges", place))
        for start, end in ranges:
            if word := _fault(start, end, labels, film):
                findings.append(Uncounted(word, place))
                continue
            for label in labels:
                spans.setdefault(label, []).append((start, end))
    return {label: sorted(frames) for label, frames in spans.items()}


def _frame(value: Any, place: str, read: Reader) -> int:
    return read.whole(int(value) if isinstance(value, float) and value.is_integer() else value, place)


def _fault(start: int, end: int, labels: list[str], film: MarkedFilm) -> str:
    """Return why a region is invalid; empty if it is valid."""
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
"""Annotator of marks without a name."""


@dataclass(frozen=True, slots=True)
class TimedMark:
    """A span of a video with its label and annotator."""

    label: str
    start_ns: int
    end_ns: int
    by: str
    place: str


@dataclass(frozen=True)
class Marked:
    """All marks of one recording; `proxy_sha256` is the hash of the video, if the file has it.

    `untimed` are the annotations without a time.
    """

    recording: str
    marks: tuple[TimedMark, ...]
    proxy_sha256: str | None = None
    untimed: tuple[str, ...] = ()


def steps_of(marked: Marked, labels: frozenset[str] | None) -> Steps:
    """Return the spans by person, and findings."""
    steps = Steps()
    steps.findings += [Uncounted("no time", place) for place in marked.untimed]
    for mark in sorted(marked.marks, key=lambda mark: mark.start_ns):
        of_person = steps.annotators.setdefault(mark.by, {})
        if not mark.label:
            steps.findings.append(Uncounted("region without label", mark.place))
        elif labels is not None and mark.label not in labels:
            steps.findings.append(Uncounted("unknown label", mark.place))
        elif mark.end_ns < mark.start_ns:
            steps.findings.append(Uncounted("end before start", mark.place))
        else:
            of_person.setdefault(mark.label, []).append((mark.start_ns / 1e9, mark.end_ns / 1e9))
    return steps


def task_of_marks(marked: Marked, fps: Fraction, frames: int) -> Task:
    """Return marks as a task: one annotation per person, numbered from 1 in the order of their names."""
    regions: dict[str, list[dict[str, object]]] = {mark.by: [] for mark in marked.marks}
    for mark in marked.marks:
        start, end = region_of(Fraction(mark.start_ns, 10**9), Fraction(mark.end_ns, 10**9), fps)
        if mark.end_ns < mark.start_ns:
            end = start - 1  # region_of returns at least one frame; keep it invalid
        value = {"ranges": [{"start": start, "end": end}], TIMELINE: [mark.label] if mark.label else []}
        ns = [mark.start_ns, mark.end_ns]
        regions[mark.by].append({"id": mark.place, "type": TIMELINE, "value": value, "ns": ns})
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

"""Marks in seconds, as tools write them that do not count frames: read as spans, or as regions of frames."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from kitchensync.dataset.annotation.forms.frame_times import region_of
from kitchensync.dataset.annotation.forms.marked_steps import TIMELINE, Steps, Uncounted
from kitchensync.dataset.annotation.forms.server_export import Task, tasks_of

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

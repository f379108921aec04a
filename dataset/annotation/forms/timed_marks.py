"""Marks in seconds, as tools write them that do not count frames: read as spans, or as regions of frames."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import PurePosixPath
from typing import Any

from kitchensync.dataset.annotation.forms.frame_times import region_of
from kitchensync.dataset.annotation.forms.marked_steps import TIMELINE, Steps, Uncounted
from kitchensync.dataset.annotation.forms.server_export import Task, tasks_of
from kitchensync.sensors.untrusted_json import BadJson, parse_json
from kitchensync.task_graphs.errors import BadGraph

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
        if word := _wrong(one, labels):
            steps.findings.append(Uncounted(word, one.place))
        else:
            mine.setdefault(one.label, []).append((one.start_ns / 1e9, one.end_ns / 1e9))
    return steps


def _wrong(one: TimedMark, labels: frozenset[str] | None) -> str:
    if not one.label:
        return "region without label"
    if labels is not None and one.label not in labels:
        return "unknown label"
    return "end before start" if one.end_ns < one.start_ns else ""


def task_of_marks(marked: Marked, fps: Fraction, frames: int) -> Task:
    """Return marks as a task: one annotation a person, numbered from 1 in the order of their names."""
    people = sorted({one.by for one in marked.marks})
    annotations = [
        {
            "id": number,
            "completed_by": person,
            "result": [_region(one, fps) for one in marked.marks if one.by == person],
        }
        for number, person in enumerate(people, 1)
    ]
    data = {
        "recording_id": marked.recording,
        "fps": float(fps),
        "frames": frames,
        "proxy_sha256": marked.proxy_sha256,
    }
    (task,) = tasks_of([{"data": data, "annotations": annotations}], marked.recording)
    return task


def _region(one: TimedMark, fps: Fraction) -> dict[str, Any]:
    start, end = region_of(Fraction(one.start_ns, 10**9), Fraction(one.end_ns, 10**9), fps)
    end = end if one.end_ns >= one.start_ns else start - 1
    value = {"ranges": [{"start": start, "end": end}], TIMELINE: [one.label] if one.label else []}
    return {"id": one.place, "type": TIMELINE, "value": value, "ns": [one.start_ns, one.end_ns]}


COLUMNS = ["metadata_id", "file_list", "flags", "temporal_coordinates", "spatial_coordinates", "metadata"]
_ATTRIBUTES = ("# ATTRIBUTE = ", "# ATTRIBUTES = ")


def parse_via(content: bytes, name: str) -> list[Marked]:
    """Read the spans of every film; marks of one instant are no steps and are left out. Raises BadGraph."""
    try:
        lines = content.decode().splitlines()
    except UnicodeDecodeError as error:
        raise BadGraph(name, f"byte {error.start}", "not UTF-8") from error
    if not any(line.startswith(f"# CSV_HEADER = {','.join(COLUMNS)}") for line in lines):
        raise BadGraph(name, "", "is no CSV of the VGG Image Annotator 3")
    options = _options(lines, name)
    found: dict[str, list[TimedMark]] = {}
    try:
        for row in csv.reader(io.StringIO("\n".join(line for line in lines if not line.startswith("#")))):
            if row:
                film, mark = _row(row, options, name)
                found.setdefault(film, []).extend([mark] if mark else [])
    except csv.Error as error:
        raise BadGraph(name, "", f"is no CSV ({error})") from error
    return [Marked(PurePosixPath(film).stem, tuple(marks)) for film, marks in found.items()]


def _row(row: list[str], options: dict[str, Any], name: str) -> tuple[str, TimedMark | None]:
    place = f"row {row[0]}"
    if len(row) < len(COLUMNS):
        raise BadGraph(name, place, f"has {len(row)} columns, not {len(COLUMNS)}")
    films, values = _json(row[1], list, place, name), _json(row[5], dict, place, name)
    times = row[3].strip("[] ").split(",")
    if not films or len(times) != 2:
        return str(films[0]) if films else "", None
    label = next((_text(number, value, options) for number, value in values.items() if value), "")
    return str(films[0]), TimedMark(
        label, _ns(times[0], place, name), _ns(times[1], place, name), NOBODY, place
    )


def _text(number: str, value: Any, options: dict[str, Any]) -> str:
    """Return the text of a label: what was written, or the option that was chosen."""
    attribute = options.get(number)
    choices = attribute.get("options") if isinstance(attribute, dict) else None
    return str(choices.get(value, value) if isinstance(choices, dict) and choices else value).strip()


def _options(lines: list[str], name: str) -> dict[str, Any]:
    for line in lines:
        for start in _ATTRIBUTES:
            if line.startswith(start):
                found: dict[str, Any] = _json(line.removeprefix(start), dict, "ATTRIBUTE", name)
                return found
    return {}


def _json(text: str, kind: type, place: str, name: str) -> Any:
    try:
        found = parse_json(text)
    except BadJson as error:
        raise BadGraph(name, place, str(error)) from error
    if not isinstance(found, kind):
        raise BadGraph(name, place, f"{text[:40]!r} is not what the tool writes")
    return found


def _ns(text: str, place: str, name: str) -> int:
    try:
        at_s = Decimal(text.strip())
    except InvalidOperation:
        at_s = Decimal(-1)
    if not (at_s.is_finite() and 0 <= at_s < 10**7):
        raise BadGraph(name, place, f"{text.strip()[:20]!r} is no number of seconds")
    return int((at_s * 10**9).to_integral_value())

"""Build every text file of a data set in the published form from a lab's own recordings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NotRequired, TypedDict

from kitchensync.dataset.narration.spoken import FineNarration
from kitchensync.dataset.source.numbering import Numbering, merged, number_of
from kitchensync.operations.entries import EntryNotes
from kitchensync.operations.error_rows import ErrorRow, details_of
from kitchensync.operations.session_state import FrozenStep
from kitchensync.task_graphs.categories import TAGS
from kitchensync.task_graphs.formats.annotation_files import format_annotations
from kitchensync.task_graphs.formats.annotations import AnnotatedRecording, Annotations
from kitchensync.task_graphs.formats.captaincook4d import format_captaincook4d
from kitchensync.task_graphs.model import END, START, Graph, Step

BESIDE = "kitchensync.jsonl"
ERROR_ROWS = "errors.jsonl"
FINE_GRAINED = "annotation_json/fine_grained.json"
"""Narrations; the published form has no file for them."""
LINKS = "metadata/download_links.json"
GOPRO = "captain_cook_4d/gopro/resolution_{}/{}_{}"
"""Path of a video without its suffix: height, recording id, height."""
MOTION = "captain_cook_4d/gopro/motion/{}_gyroscope.npz"
"""Path of the camera's gyroscope samples: recording id."""
VIDEO_COLUMNS: tuple[str, ...] = (
    "recording_id",
    "environment_id",
    "person_id",
    "duration(min)",
    "duration(sec)",
)


class SpokenNarration(FineNarration):
    """A narration with the number of its speaker."""

    speaker: int


class AbsentKind(TypedDict):
    """A kind of file that a recording does not have in a data set, and the reason."""

    kind: str
    why: str


class ReleasedMember(TypedDict):
    """The files of a recording in a data set: path by kind, and the kinds that are absent.

    `holes` counts, per kind, the frames without data of that kind; for the frame table, frames that were never
    captured while the video ran. Only own recordings have it.
    """

    recording: str
    published_id: str
    streams: dict[str, str]
    absent: list[AbsentKind]
    holes: NotRequired[dict[str, int]]
    lacking: NotRequired[list[LackingRow]]
    coverage: NotRequired[list[CoverageRow]]
    step_times: NotRequired[str]


class LackingRow(TypedDict):
    """Gaps of a stream: spans in seconds of the video, entries they overlap (from 0), and `said`, a sentence."""

    stream: str
    holes_s: list[list[float]]
    entries: list[int]
    said: str


class CoverageRow(TypedDict):
    """Coverage of a session by a stream: share, all gaps, and the largest packet interval, seconds."""

    stream: str
    coverage: float
    holes_s: list[list[float]]
    step_s: float


@dataclass(frozen=True)
class Cooked:
    """A recording as it goes into a data set; `facts` are fields that the published form cannot hold."""

    uuid: str
    recipe: str
    title: str
    person: str
    kitchen: str
    errors_planned: bool
    steps: Mapping[str, FrozenStep]
    edges: list[list[int]]
    entries: list[EntryNotes]
    film_s: float
    facts: dict[str, Any] = field(default_factory=dict)
    narrated: list[SpokenNarration] = field(default_factory=list)
    errors: list[ErrorRow] = field(default_factory=list)
    "Times in seconds of the video."


@dataclass(frozen=True)
class Member:
    """A recording with its published id."""

    published_id: str
    cooked: Cooked
    annotated: AnnotatedRecording


def numbered(cooked: Cooked, numbering: Numbering) -> Member:
    """Assign a recording its published id, and numbers to its recipe, person and kitchen."""
    activity = number_of(numbering.activities, cooked.recipe)
    published_id = numbering.recording(cooked.uuid, activity, errors_planned=cooked.errors_planned)
    annotated = AnnotatedRecording(
        published_id,
        activity,
        cooked.title,
        number_of(numbering.persons, cooked.person),
        number_of(numbering.environments, cooked.kitchen),
        tuple(notes.entry for notes in cooked.entries),
    )
    return Member(published_id, cooked, annotated)


def text_files(
    members: Iterable[Member], numbering: Numbering, stated: Iterable[dict[str, Any]] = ()
) -> dict[str, str]:
    """Return relative path -> text of all annotations, graphs and tables of a data set.

    `stated` are lines about recipes and participants, as people described them.
    """
    ordered = sorted(members, key=lambda member: tuple(map(int, member.published_id.split("_"))))
    annotations = annotations_of(ordered, numbering)
    graphs = {f"task_graphs/{m.annotated.graph_stem}.json": graph_of(m.cooked) for m in ordered}
    lines = chain(chain.from_iterable(map(_fact_lines, ordered)), stated)
    beside = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    narrated = {m.published_id: m.cooked.narrated for m in ordered if m.cooked.narrated}
    spoken = {FINE_GRAINED: json.dumps(narrated, indent=4, ensure_ascii=False)} if narrated else {}
    errors = "".join(
        json.dumps({**row, "recording": member.published_id}, ensure_ascii=False) + "\n"
        for member in ordered
        for row in member.cooked.errors
    )
    return format_annotations(annotations) | graphs | {BESIDE: beside, ERROR_ROWS: errors} | spoken


def annotations_of(members: Sequence[Member], numbering: Numbering) -> Annotations:
    """Return the annotations of recordings in this order."""
    videos = [VIDEO_COLUMNS]
    for member in sorted(members, key=lambda m: m.published_id):
        annotated, film_s = member.annotated, member.cooked.film_s
        ids = (annotated.recording_id, str(annotated.environment), str(annotated.person_id))
        videos.append((*ids, f"{film_s / 60:.2f}", f"{film_s:.2f}"))
    return Annotations(
        tuple(member.annotated for member in members),
        merged(numbering.steps),
        {tag: number for number, tag in enumerate(TAGS)},
        tuple(videos),
    )


def graph_of(cooked: Cooked) -> str:
    """Return the recipe graph that was cooked, in the published form."""
    steps = {int(node): step["label"] for node, step in cooked.steps.items()}
    ends = {node for edge in cooked.edges for node in edge} - steps.keys()
    labels = steps | {node: START if node == 0 else END for node in ends}
    nodes = tuple(Step(node, labels[node]) for node in sorted(labels))
    return format_captaincook4d(Graph(cooked.recipe, nodes, tuple((u, v) for u, v in cooked.edges)))


def _fact_lines(member: Member) -> Iterator[dict[str, Any]]:
    yield {"recording_id": member.published_id, "kind": "recording", **member.cooked.facts}
    details = {row["error_id"]: details_of(row) for row in member.cooked.errors}
    for place, notes in enumerate(member.cooked.entries):
        entry = {"recording_id": member.published_id, "kind": "entry", "entry": place, "node": notes.node}
        errors = [error | details.get(error["error_id"], {}) for error in notes.beside.get("errors", ())]
        yield {**entry, **notes.beside} | ({"errors": errors} if errors else {})

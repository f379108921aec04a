"""A data set in the published form, from own recordings: every text file of it, with what is absent and why."""

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
"""Narrations: the published form has no place for them."""
LINKS = "metadata/download_links.json"
GOPRO = "captain_cook_4d/gopro/resolution_{}/{}_{}"
"""Films of a height, of a recording, its height behind its name; without ending."""
MOTION = "captain_cook_4d/gopro/motion/{}_gyroscope.npz"
"""The camera's own rotation of a recording."""
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
    """A kind of file that a recording lacks in a data set, and why."""

    kind: str
    why: str


class ReleasedMember(TypedDict):
    """What of a recording is in a data set: path by kind of file, and what is absent.

    Of own recordings `holes` are frames that have none of a kind; those of the frames themselves were never taken
    while the film ran.
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
    """What a stream lacks: spans in seconds of the film, the entries that they touch from 0, both in words."""

    stream: str
    holes_s: list[list[float]]
    entries: list[int]
    said: str


class CoverageRow(TypedDict):
    """How much of the session a stream covers, all its holes, and how far apart its packets may be, seconds."""

    stream: str
    coverage: float
    holes_s: list[list[float]]
    step_s: float


@dataclass(frozen=True)
class Cooked:
    """One recording as it goes into a data set. `facts` are what the published form has no place for."""

    uuid: str
    recipe: str
    title: str
    person: str
    kitchen: str
    errors_planned: bool
    steps: Mapping[str, FrozenStep]
    edges: list[list[int]]
    told: list[EntryNotes]
    film_s: float
    facts: dict[str, Any] = field(default_factory=dict)
    narrated: list[SpokenNarration] = field(default_factory=list)
    "What people said about the film, with the number of each speaker."
    errors: list[ErrorRow] = field(default_factory=list)
    "Times in seconds of the film."


@dataclass(frozen=True)
class Member:
    """A recording with its published id."""

    published_id: str
    cooked: Cooked
    annotated: AnnotatedRecording


def numbered(cooked: Cooked, numbering: Numbering) -> Member:
    """Give a recording its published id, its recipe, person and kitchen their numbers."""
    activity = number_of(numbering.activities, cooked.recipe)
    published_id = numbering.recording(cooked.uuid, activity, errors_planned=cooked.errors_planned)
    annotated = AnnotatedRecording(
        published_id,
        activity,
        cooked.title,
        number_of(numbering.persons, cooked.person),
        number_of(numbering.environments, cooked.kitchen),
        tuple(told.entry for told in cooked.told),
    )
    return Member(published_id, cooked, annotated)


def text_files(
    members: Iterable[Member], numbering: Numbering, stated: Iterable[dict[str, Any]] = ()
) -> dict[str, str]:
    """Return relative path -> text of all annotations, graphs and tables of a data set.

    `stated` are lines of what people say of recipes and participants.
    """
    ordered = sorted(members, key=lambda member: tuple(map(int, member.published_id.split("_"))))
    annotations = annotations_of(ordered, numbering)
    graphs = {f"task_graphs/{m.annotated.graph_stem}.json": graph_of(m.cooked) for m in ordered}
    lines = chain(chain.from_iterable(map(_beside, ordered)), stated)
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
        one, film_s = member.annotated, member.cooked.film_s
        ids = (one.recording_id, str(one.environment), str(one.person_id))
        videos.append((*ids, f"{film_s / 60:.2f}", f"{film_s:.2f}"))
    return Annotations(
        tuple(member.annotated for member in members),
        merged(numbering.steps),
        {tag: number for number, tag in enumerate(TAGS)},
        tuple(videos),
    )


def graph_of(cooked: Cooked) -> str:
    """Return the graph of the recipe as it was cooked, in the published form."""
    steps = {int(node): step["label"] for node, step in cooked.steps.items()}
    ends = {node for edge in cooked.edges for node in edge} - steps.keys()
    labels = steps | {node: START if node == 0 else END for node in ends}
    nodes = tuple(Step(node, labels[node]) for node in sorted(labels))
    return format_captaincook4d(Graph(cooked.recipe, nodes, tuple((u, v) for u, v in cooked.edges)))


def _beside(member: Member) -> Iterator[dict[str, Any]]:
    yield {"recording_id": member.published_id, "kind": "recording", **member.cooked.facts}
    details = {row["error_id"]: details_of(row) for row in member.cooked.errors}
    for place, told in enumerate(member.cooked.told):
        entry = {"recording_id": member.published_id, "kind": "entry", "entry": place, "node": told.node}
        errors = [error | details.get(error["error_id"], {}) for error in told.beside.get("errors", ())]
        yield {**entry, **told.beside} | ({"errors": errors} if errors else {})

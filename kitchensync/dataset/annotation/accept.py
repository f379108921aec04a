"""Store annotations in a recording, and accept one version as its step times or narrations."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, TypedDict

from kitchensync.dataset.annotation.forms.frame_times import is_rate, region_of
from kitchensync.dataset.annotation.forms.marked_steps import (
    BOX,
    MarkedFilm,
    Uncounted,
    marked_frames,
    task_of_marks,
)
from kitchensync.dataset.annotation.forms.narration import LABELS, spoken_regions
from kitchensync.dataset.annotation.forms.server_export import MOST_BYTES, Annotation, Task, parse_export
from kitchensync.dataset.annotation.labels import labels_of
from kitchensync.dataset.annotation.read_file import elan_marks
from kitchensync.dataset.narration.narrations import NarratedVideo, Narration, keep_narrations
from kitchensync.dataset.source.own_recording import OwnRecording
from kitchensync.storage.recording_files.annotation_folder import (
    ACCEPTED,
    ACCEPTED_SCHEMA,
    add_version,
    editing,
    films_of,
    read_annotations,
    versions,
    write_annotations,
)
from kitchensync.task_graphs.errors import BadGraph, RecipeError
from kitchensync.task_graphs.formats.graph_files import read_bytes
from kitchensync.task_graphs.formats.strict_json import Reader


class NotAcceptable(RecipeError):
    """An annotation cannot become the step times of a recording."""


@dataclass(frozen=True)
class KeptVersions:
    """Annotation id -> version number, of new versions and of versions that existed."""

    new: dict[int, int]
    same: dict[int, int]


def keep(recording: Path, task: Task, source: str) -> KeptVersions:
    """Store every annotation of a task unchanged, including cancelled ones; storing twice changes nothing.

    `source` is a server and project, or a file.
    """
    kept = KeptVersions({}, {})
    for annotation in task.annotations:
        content = {
            "source": source,
            "task": task.id,
            "annotation": annotation.id,
            "author": annotation.by,
            "was_cancelled": annotation.was_cancelled,
            "kept_utc_ns": time.time_ns(),
            "film": {"fps": task.fps, "frames": task.frames, "proxy_sha256": task.data.get("proxy_sha256")},
            "raw": annotation.raw,
        }
        number, is_new = add_version(recording, content)
        (kept.new if is_new else kept.same)[annotation.id] = number
    return kept


def keep_file(own: OwnRecording, file: Path) -> KeptVersions:
    """Store the annotations of a recording from a file. Raises BadGraph, NotAcceptable."""
    name, marks = own.recording.id, elan_marks(file)
    if marks is None:
        tasks = parse_export(read_bytes(file, most_bytes=MOST_BYTES), file.name)
    elif marks.recording == name and marks.untimed:
        raise BadGraph(file.name, marks.untimed[0], "has no time; align it in ELAN")
    else:
        tasks = [task_of_marks(marks, own.frames.fps, len(own.frames))]
    for task in tasks:
        if task.recording == name:
            return keep(own.recording.path, task, file.name)
    raise NotAcceptable(f"{file.name}: has no annotation of the recording {name}; give its own export")


def accept(own: OwnRecording, annotation: int, films: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Make the newest version of an annotation the step times of a recording; return the file's content.

    `films` are hashes of videos that the app showed and that were not exported.
    Raises NotAcceptable without changing anything.
    """
    place = f"annotation {annotation}"
    number, version = _newest_version(own, annotation, films, place)
    labels = {label: node for node, label in labels_of(own.state["recording"]).items()}
    findings: list[Uncounted] = []
    film = MarkedFilm(own.frames.fps, len(own.frames), frozenset(labels))
    frames = marked_frames(_annotation(version, place), film, findings, Reader(own.recording.id))
    _refuse(findings)
    steps = [
        {"node": labels[label], "start_frame": start, "end_frame": end}
        for label, spans in sorted(frames.items())
        for start, end in spans
    ]
    if not steps:
        raise NotAcceptable(f"{place}: has no step; accept another annotation")
    marked = {step["node"] for step in steps}
    touched = [int(node) for node, step in own.state["steps"].items() if step["state"] == "done"]
    with editing(own.recording.path):
        before = read_annotations(own.recording.path, ACCEPTED, ACCEPTED_SCHEMA)
        earlier = []  # without steps: they are in the version
        if before is not None:
            if before["version"] == number:
                return before
            keys = ("version", "annotation", "author", "accepted_utc_ns")
            earlier = [*before["earlier"], {key: before[key] for key in keys}]
        content = {
            "schema": ACCEPTED_SCHEMA,
            "version": number,
            "annotation": annotation,
            "author": version["author"],
            "source": version["source"],
            "accepted_utc_ns": time.time_ns(),
            "fps": str(own.frames.fps),
            "frames": len(own.frames),
            "steps": sorted(steps, key=itemgetter("node", "start_frame")),
            "touched_not_marked": sorted(node for node in touched if node not in marked),
            "earlier": earlier,
        }
        write_annotations(own.recording.path, ACCEPTED, content)
    return content


class AcceptedNarrations(TypedDict):
    """Narrations accepted from an annotation, and the number of their version."""

    version: int
    author: str
    narrations: list[Narration]


def accept_narrations(own: OwnRecording, annotation: int) -> AcceptedNarrations | None:
    """Store the transcription in an annotation as the narrations of its author; return them.

    None if the annotation is not a transcription. Raises NotAcceptable without changing anything.
    """
    place = f"annotation {annotation}"
    _, version = _newest_version(own, annotation, frozenset(), place)
    content = _annotation(version, place)
    if not any(entry.get("type") == LABELS for entry in content.result):
        return None  # it marks steps in frames
    findings: list[Uncounted] = []
    nodes = {label: node for node, label in labels_of(own.state["recording"]).items()}
    fps, last_frame = own.frames.fps, len(own.frames) - 1
    regions = spoken_regions(content, nodes, findings, Reader(own.recording.id))
    _refuse(findings)
    if not regions:
        raise NotAcceptable(f"{place}: has no text; accept another annotation")
    film: NarratedVideo = {
        "fps": [fps.numerator, fps.denominator],
        "frames": len(own.frames),
        "sha256": version["film"]["proxy_sha256"],
    }
    narrations: list[Narration] = []
    for region in regions:
        first, last = region_of(region.start_s, region.end_s, fps)
        node = nodes[region.label]
        narrations.append(
            {
                "narration": hashlib.sha256(f"{region.region} {node}".encode()).hexdigest()[:16],
                "frame": min(first - 1, last_frame),
                "end_frame": min(last - 1, last_frame),
                "node": node,
                "text": region.text,
                "source": "typed",
            }
        )
    narrations.sort(key=itemgetter("frame", "narration"))
    number = keep_narrations(own.recording.path, version["author"], film, narrations)
    return {"version": number, "author": version["author"], "narrations": narrations}


def _newest_version(
    own: OwnRecording, annotation: int, films: frozenset[str], place: str
) -> tuple[int, dict[str, Any]]:
    """Return the newest version of an annotation. Raises NotAcceptable if cancelled or made in another video."""
    kept = versions(own.recording.path)
    matches = {number: version for number, version in kept.items() if version["annotation"] == annotation}
    if not matches:
        ids = ", ".join(sorted({str(version["annotation"]) for version in kept.values()})) or "none"
        raise NotAcceptable(
            f"{own.recording.path.name}: no annotation {annotation} is kept, there are: {ids}; "
            "run `kitchensync annotate pull`, or give the exported file with --file"
        )
    number, version = max(matches.items())
    if version["was_cancelled"]:
        raise NotAcceptable(f"{place}: was cancelled by its annotator; accept another annotation")
    _check_film(own, version["film"], films, place)
    return number, version


def _check_film(own: OwnRecording, film: dict[str, Any], films: frozenset[str], place: str) -> None:
    """Check that frames were counted in the recording's video. Raises NotAcceptable."""
    advice = "annotate the video that `kitchensync annotate export` writes"
    if film["fps"] is None or not is_rate(film["fps"], own.frames.fps):
        raise NotAcceptable(
            f"{place}: region at another rate: {film['fps']} a second, the video has {own.frames.fps}; {advice}"
        )
    if film["frames"] != len(own.frames):
        raise NotAcceptable(
            f"{place}: its video has {film['frames']} frames, that of {own.recording.id} {len(own.frames)}; {advice}"
        )
    sha256 = film["proxy_sha256"]
    if sha256 is not None and sha256 not in films | {row["sha256"] for row in films_of(own.recording.path)}:
        raise NotAcceptable(
            f"{place}: video of another hash: {sha256} was never written for {own.recording.id}; {advice}"
        )


def _annotation(version: dict[str, Any], place: str) -> Annotation:
    return Annotation(
        version["annotation"], version["author"], False, version["raw"].get("result") or [], place
    )


def _refuse(findings: list[Uncounted]) -> None:
    """Raise NotAcceptable for findings, except boxes: the server adds those, and they mark no time."""
    if wrong := [finding for finding in findings if finding.word != BOX]:
        named = "; ".join(f"{finding.word}: {finding.where}" for finding in wrong)
        raise NotAcceptable(f"{named}; correct it in the tool, then pull again")

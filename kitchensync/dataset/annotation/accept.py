"""Keep what annotators marked in a recording, and accept one version as its step times."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

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
    FILMS,
    FILMS_SCHEMA,
    add_version,
    editing,
    read_annotations,
    versions,
    write_annotations,
)
from kitchensync.task_graphs.errors import BadGraph, RecipeError
from kitchensync.task_graphs.formats.graph_files import read_bytes
from kitchensync.task_graphs.formats.strict_json import Reader


class NotAcceptable(RecipeError):
    """An annotation that cannot become a recording's step times, with what and where."""


@dataclass(frozen=True)
class KeptVersions:
    """What became of the annotations of one task: new versions by number, and those that were there."""

    new: dict[int, int]
    same: dict[int, int]


def keep(recording: Path, task: Task, source: str) -> KeptVersions:
    """Keep every annotation of a task as it came, cancelled ones too; the same again changes nothing.

    `source` says where they come from: a server and project, or a file.
    """
    kept = KeptVersions({}, {})
    for one in task.annotations:
        content = {
            "source": source,
            "task": task.id,
            "annotation": one.id,
            "author": one.by,
            "was_cancelled": one.was_cancelled,
            "kept_utc_ns": time.time_ns(),
            "film": {"fps": task.fps, "frames": task.frames, "proxy_sha256": task.data.get("proxy_sha256")},
            "raw": one.raw,
        }
        number, is_new = add_version(recording, content)
        (kept.new if is_new else kept.same)[one.id] = number
    return kept


def keep_file(own: OwnRecording, file: Path) -> KeptVersions:
    """Keep the annotations that a file has of a recording. Raises BadGraph, NotAcceptable."""
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
    raise NotAcceptable(f"{file.name}: has nothing of the recording {name}; give its own export")


def accept(own: OwnRecording, annotation: int, films: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Make the newest version of an annotation the step times of a recording; return what was written.

    `films` are hashes of films that were not handed out but shown here.
    Raises NotAcceptable, and then nothing changed.
    """
    place = f"annotation {annotation}"
    number, version = _whole_version(own, annotation, films, place)
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
        raise NotAcceptable(f"{place}: holds no step; accept another one")
    done = {one["node"] for one in steps}
    touched = [int(node) for node, step in own.state["steps"].items() if step["state"] == "done"]
    with editing(own.recording.path):
        before = read_annotations(own.recording.path, ACCEPTED, ACCEPTED_SCHEMA)
        earlier = []  # without its steps: those are in its version
        if before is not None:
            if before["version"] == number:
                return before
            kept = ("version", "annotation", "author", "accepted_utc_ns")
            earlier = [*before["earlier"], {key: before[key] for key in kept}]
        content = {
            "schema": ACCEPTED_SCHEMA,
            "version": number,
            "annotation": annotation,
            "author": version["author"],
            "source": version["source"],
            "accepted_utc_ns": time.time_ns(),
            "fps": str(own.frames.fps),
            "frames": len(own.frames),
            "steps": sorted(steps, key=lambda one: (one["node"], one["start_frame"])),
            "touched_not_marked": sorted(node for node in touched if node not in done),
            "earlier": earlier,
        }
        write_annotations(own.recording.path, ACCEPTED, content)
    return content


def accept_narrations(own: OwnRecording, annotation: int) -> dict[str, Any] | None:
    """Keep what an annotation says was spoken as the narrations of its author; return what is kept.

    None where it is no transcription. The newest version counts. Raises NotAcceptable, and then nothing changed.
    """
    place = f"annotation {annotation}"
    _, version = _whole_version(own, annotation, frozenset(), place)
    one = _annotation(version, place)
    if not any(entry.get("type") == LABELS for entry in one.result):  # marks pictures, not seconds of sound
        return None
    findings: list[Uncounted] = []
    nodes = {label: node for node, label in labels_of(own.state["recording"]).items()}
    fps, most = own.frames.fps, len(own.frames) - 1
    said = spoken_regions(one, nodes, findings, Reader(own.recording.id))
    _refuse(findings)
    if not said:
        raise NotAcceptable(f"{place}: holds no text; accept another one")
    film: NarratedVideo = {
        "fps": [fps.numerator, fps.denominator],
        "frames": len(own.frames),
        "sha256": version["film"]["proxy_sha256"],
    }
    told: list[Narration] = []
    for region in said:
        first, last = region_of(region.start_s, region.end_s, fps)
        node = nodes[region.label]
        told.append(
            {
                "narration": hashlib.sha256(f"{region.region} {node}".encode()).hexdigest()[:16],
                "frame": min(first - 1, most),
                "end_frame": min(last - 1, most),
                "node": node,
                "text": region.text,
                "source": "typed",
            }
        )
    told.sort(key=itemgetter("frame", "narration"))
    kept = keep_narrations(own.recording.path, version["author"], film, told)
    return {"version": kept, "author": version["author"], "narrations": told}


def _whole_version(
    own: OwnRecording, annotation: int, films: frozenset[str], place: str
) -> tuple[int, dict[str, Any]]:
    """Return the newest version of an annotation that was finished, in our film. Raises NotAcceptable."""
    kept = versions(own.recording.path)
    found = {number: one for number, one in kept.items() if one["annotation"] == annotation}
    if not found:
        known = ", ".join(sorted({str(one["annotation"]) for one in kept.values()})) or "none"
        raise NotAcceptable(
            f"{own.recording.path.name}: no annotation {annotation} is kept, there are: {known}; "
            "run `kitchensync annotate pull`, or give the exported file with --file"
        )
    number, version = max(found.items())
    if version["was_cancelled"]:
        raise NotAcceptable(f"{place}: was cancelled by its annotator; accept another one")
    _check_film(own, version["film"], films, place)
    return number, version


def _check_film(own: OwnRecording, film: dict[str, Any], films: frozenset[str], place: str) -> None:
    """Refuse frames that were counted in another film than ours. Raises NotAcceptable."""
    if film["fps"] is None or not is_rate(film["fps"], own.frames.fps):
        raise NotAcceptable(
            f"{place}: region at another rate: {film['fps']} frames a second, the film has {own.frames.fps}; "
            "annotate the film that `kitchensync annotate export` writes"
        )
    if film["frames"] != len(own.frames):
        raise NotAcceptable(
            f"{place}: its film has {film['frames']} frames, that of {own.recording.id} {len(own.frames)}; "
            "annotate the film that `kitchensync annotate export` writes"
        )
    handed_out = read_annotations(own.recording.path, FILMS, FILMS_SCHEMA) or {"films": []}
    known = films | {one["sha256"] for one in handed_out["films"]}
    if film["proxy_sha256"] is not None and film["proxy_sha256"] not in known:
        raise NotAcceptable(
            f"{place}: film of another hash: {film['proxy_sha256']} was never written of {own.recording.id}; "
            "annotate the film that `kitchensync annotate export` writes"
        )


def _annotation(version: dict[str, Any], place: str) -> Annotation:
    return Annotation(
        version["annotation"], version["author"], False, version["raw"].get("result") or [], place
    )


def _refuse(findings: list[Uncounted]) -> None:
    """Refuse an annotation of which something cannot count; what the server added marks nothing."""
    if wrong := [finding for finding in findings if finding.word != BOX]:
        named = "; ".join(f"{finding.word}: {finding.where}" for finding in wrong)
        raise NotAcceptable(f"{named}; correct it in the tool, then pull again")

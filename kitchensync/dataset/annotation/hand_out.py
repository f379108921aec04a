"""Export a recording to annotators: a small video, the labels of its recipe version, proposals from touches."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, TypedDict

from kitchensync.dataset.annotation.forms.elan import TIMES, write_elan
from kitchensync.dataset.annotation.forms.frame_times import region_of
from kitchensync.dataset.annotation.forms.label_config import audio_config, timeline_config
from kitchensync.dataset.annotation.forms.marked_steps import TIMELINE, Marked, Spans, TimedMark
from kitchensync.dataset.annotation.labels import labels_of, touched_spans, version_of
from kitchensync.dataset.source.own_recording import NotReleasable, OwnRecording
from kitchensync.operations.entries import counts
from kitchensync.shell.files_on_disk import file_sha256
from kitchensync.storage.consent import Purpose
from kitchensync.storage.exports.film import made_of_film, write_small_film
from kitchensync.storage.options.outputs import written
from kitchensync.storage.recording_files.annotation_folder import (
    FILMS,
    FILMS_SCHEMA,
    editing,
    films_of,
    write_annotations,
)

HEIGHT = 360
Tell = Callable[[int, int, str], None]


@dataclass(frozen=True)
class ExportOptions:
    """Options of an export: `form` is timeline or audio, `films_at` the address of the folder of all videos."""

    form: str = "timeline"
    shows_errors: bool = False
    films_at: str = ""


@dataclass(frozen=True)
class ServerTask:
    """The task of a recording on an annotation server, with the name and configuration of its project.

    `films` are the hashes of all exported videos of the recording: the same frames, encoded at different times.
    """

    recording: str
    project: str
    config: bytes
    labels: tuple[str, ...]
    fps: Fraction
    task: TaskToAdd
    films: frozenset[str]


def open_to_annotate(path: Path, without_consent: str) -> OwnRecording:
    """Open a recording for annotators. Raises NotPermitted, Withdrawn, NotReleasable."""
    own = OwnRecording.open(path, without_consent=without_consent, purpose=Purpose.ANNOTATE)
    own.check_filmed()
    own.check_placed()
    return own


def write_film(own: OwnRecording, folder: Path, options: ExportOptions, *, force: bool, tell: Tell) -> None:
    """Write the small video into the folder of its recipe version, unless it exists; record it in the recording.

    Raises OutputRefused, OSError, UnreadableMedia.
    """
    path = folder / film_place(own)
    source = hashlib.sha256(f"{own.manifest['uuid']} annotate {own.pauses}".encode())
    source.update(own.clip.shown_as)
    if made_of_film(path) != source.hexdigest():
        with written(path, force=force, ending=".mp4") as part:
            write_small_film(
                own.clip,
                part,
                height=HEIGHT,
                hidden=own.hidden,
                made_of=source.hexdigest(),
                tell=lambda done, whole: tell(done, whole, own.recording.id),
            )
    _record_film(own, file_sha256(path), f"{options.films_at}/{film_place(own).as_posix()}")


def film_place(own: OwnRecording) -> Path:
    """Return the path of the small video inside the export folder."""
    return Path(version_of(own.state["recording"])) / "films" / f"{own.recording.id}.mp4"


def _record_film(own: OwnRecording, sha256: str, address: str) -> None:
    entry = {
        "sha256": sha256,
        "address": address,
        "fps": str(own.frames.fps),
        "frames": len(own.frames),
        "height": HEIGHT,
    }
    with editing(own.recording.path):
        films = films_of(own.recording.path)
        if films and {**films[-1], "utc_ns": 0} == {**entry, "utc_ns": 0}:
            return
        content = {"schema": FILMS_SCHEMA, "films": [*films, {**entry, "utc_ns": time.time_ns()}]}
        write_annotations(own.recording.path, FILMS, content)


def server_task(own: OwnRecording, options: ExportOptions) -> ServerTask:
    """Return the task of a recording whose video was written. Raises NotReleasable."""
    films = films_of(own.recording.path)
    if not films or films[-1]["frames"] != len(own.frames):
        raise NotReleasable(
            f"{own.recording.path}: its video was not written yet; run `kitchensync annotate export` first"
        )
    frozen = own.state["recording"]
    by_node = labels_of(frozen)
    errors = [
        f"{by_node[error['node']]}: {error['text'] or error['description']}"  # type: ignore[index]
        for error in own.state["errors"].values()
        if counts(error)
    ]
    is_timeline = options.form == "timeline"
    kind = "steps" if is_timeline else "narration"
    labels = tuple(by_node.values())
    write = timeline_config if is_timeline else audio_config
    data = {
        "video" if is_timeline else "audio": films[-1]["address"],
        "fps": float(own.frames.fps),
        "frames": len(own.frames),
        "title": own.recording.id,
        "recording_id": own.recording.id,
        "recording_uuid": own.manifest["uuid"],
        "proxy_sha256": films[-1]["sha256"],
        **({"errors": "\n".join(errors) or "none"} if options.shows_errors else {}),
    }
    return ServerTask(
        own.recording.id,
        f"{version_of(frozen)} {kind}{' with errors' if options.shows_errors else ''}",
        write(labels, shows_errors=options.shows_errors),
        labels,
        own.frames.fps,
        task_of(data, touched_spans(own), own.frames.fps, options.form),
        frozenset(film["sha256"] for film in films),
    )


def elan_files(own: OwnRecording) -> dict[str, bytes]:
    """Return the ELAN files of a recording whose video was written, with accepted step times, else touches."""
    labels = labels_of(own.state["recording"])
    if own.accepted is None:
        spans, by = touched_spans(own), "touches"
    else:
        spans = {label: own.accepted.spans_s(node) for node, label in labels.items()}
        by = own.accepted.author
    marks = tuple(
        TimedMark(label, round(start_s * 1e9), round(end_s * 1e9), by, "")
        for label, of_label in spans.items()
        for start_s, end_s in of_label
    )
    film = films_of(own.recording.path)[-1]
    name = f"{film_place(own).parts[0]}/{own.recording.id}.eaf"
    marked = Marked(own.recording.id, marks, film["sha256"])
    started_s = int((own.manifest.get("started") or {}).get("utc_ns") or 0) // 10**9
    content, times = write_elan(marked, f"films/{own.recording.id}.mp4", utc_s=started_s)
    return {name: content, f"{name}{TIMES}": times}


MODEL = "step-events/1"
"""Model name of the proposals, which come from touches of the tablet."""


class TaskToAdd(TypedDict):
    """A task with proposals, in the form of the server."""

    data: dict[str, Any]
    predictions: list[dict[str, Any]]


def task_of(data: dict[str, Any], touched: Spans, fps: Fraction, form: str) -> TaskToAdd:
    """Return a task in the form of the server; no region exceeds `data["frames"]`."""
    frames = int(data["frames"])
    length_s = float(frames / fps)
    result: list[dict[str, object]] = []
    for label, spans in touched.items():
        for number, (start_s, end_s) in enumerate(spans, 1):
            region: dict[str, object] = {"id": f"touch-{label.partition(' ')[0]}-{number}"}
            if form == "timeline":
                start, end = (min(frame, frames) for frame in region_of(start_s, end_s, fps))
                value = {"ranges": [{"start": start, "end": end}], TIMELINE: [label]}
                region |= {"from_name": "step", "to_name": "video", "type": TIMELINE, "origin": "prediction"}
                region["value"] = value
            else:
                span = {"start": start_s, "end": min(end_s, length_s), "channel": 0, "labels": [label]}
                region |= {"from_name": "action", "to_name": "audio", "type": "labels"}
                region |= {"original_length": length_s, "value": span}
            result.append(region)
    proposal = [{"model_version": MODEL, "score": 1.0, "result": result}] if result else []
    return {"data": data, "predictions": proposal}

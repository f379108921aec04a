"""What annotators get of a recording: a small film, the labels of its recipe version, proposals from touches."""

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
    read_annotations,
    write_annotations,
)

HEIGHT = 360
Tell = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Choice:
    """How films are handed out: `form` is timeline or audio, `films_at` the address of the folder of all films."""

    form: str = "timeline"
    shows_errors: bool = False
    films_at: str = ""


@dataclass(frozen=True)
class ServerTask:
    """One recording as an annotation server takes it: its project's name and configuration, and its task.

    `films` are the hashes of all films that were handed out of it: the same pictures, encoded at some time.
    """

    recording: str
    project: str
    config: bytes
    labels: tuple[str, ...]
    fps: Fraction
    task: TaskToAdd
    films: frozenset[str]


def open_to_annotate(path: Path, without_consent: str) -> OwnRecording:
    """Open a recording that may be given to annotators. Raises NotPermitted, Withdrawn, NotReleasable."""
    own = OwnRecording.open(path, without_consent=without_consent, purpose=Purpose.ANNOTATE)
    own.check_filmed()
    own.check_placed()
    return own


def write_film(own: OwnRecording, folder: Path, choice: Choice, *, force: bool, tell: Tell) -> None:
    """Write the small film into the folder of its recipe version, unless it is there; note it in the recording.

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
    _note(own, file_sha256(path), f"{choice.films_at}/{film_place(own).as_posix()}")


def film_place(own: OwnRecording) -> Path:
    """Return where the small film lies below the folder that was handed out."""
    return Path(version_of(own.state["recording"])) / "films" / f"{own.recording.id}.mp4"


def _note(own: OwnRecording, sha256: str, address: str) -> None:
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


def films_of(recording: Path) -> list[dict[str, Any]]:
    """Return the films that were handed out of a recording, the newest last. Raises BadAnnotations."""
    return list((read_annotations(recording, FILMS, FILMS_SCHEMA) or {"films": []})["films"])


def handed_out(own: OwnRecording, choice: Choice) -> ServerTask:
    """Return the task of a recording whose film was written. Raises NotReleasable."""
    films = films_of(own.recording.path)
    if not films or films[-1]["frames"] != len(own.frames):
        raise NotReleasable(
            f"{own.recording.path}: its film was not written yet; run `kitchensync annotate export` first"
        )
    frozen = own.state["recording"]
    by_node = labels_of(frozen)
    made = [error for error in own.state["errors"].values() if counts(error)]
    errors = (f"{by_node[e['node']]}: {e['text'] or e['description']}" for e in made)  # type: ignore[index]
    kind = {"timeline": "steps", "audio": "narration"}[choice.form]
    labels = tuple(by_node.values())
    write = timeline_config if choice.form == "timeline" else audio_config
    data = {
        "video" if choice.form == "timeline" else "audio": films[-1]["address"],
        "fps": float(own.frames.fps),
        "frames": len(own.frames),
        "title": own.recording.id,
        "recording_id": own.recording.id,
        "recording_uuid": own.manifest["uuid"],
        "proxy_sha256": films[-1]["sha256"],
        **({"errors": "\n".join(errors) or "none"} if choice.shows_errors else {}),
    }
    return ServerTask(
        own.recording.id,
        f"{version_of(frozen)} {kind}{' with errors' if choice.shows_errors else ''}",
        write(labels, shows_errors=choice.shows_errors),
        labels,
        own.frames.fps,
        task_of(data, touched_spans(own), own.frames.fps, choice.form),
        frozenset(film["sha256"] for film in films),
    )


def elan_files(own: OwnRecording) -> dict[str, bytes]:
    """Return the files of ELAN for a recording whose film was written: accepted step times, else touched ones."""
    labels = labels_of(own.state["recording"])
    accepted = own.accepted
    spans = (
        touched_spans(own)
        if accepted is None
        else {label: accepted.spans_s(node) for node, label in labels.items()}
    )
    by = "touches" if accepted is None else accepted.author
    marks = tuple(
        TimedMark(label, round(start_s * 1e9), round(end_s * 1e9), by, "")
        for label, many in spans.items()
        for start_s, end_s in many
    )
    film = films_of(own.recording.path)[-1]
    name = f"{film_place(own).parts[0]}/{own.recording.id}.eaf"
    marked = Marked(own.recording.id, marks, film["sha256"])
    made_s = int((own.manifest.get("started") or {}).get("utc_ns") or 0) // 10**9
    content, times = write_elan(marked, f"films/{own.recording.id}.mp4", utc_s=made_s)
    return {name: content, f"{name}{TIMES}": times}


FORMS = ("timeline", "audio")
MODEL = "step-events/1"
"""Who made the proposals: touches of the tablet."""


class TaskToAdd(TypedDict):
    """A task as a server takes it, with proposals."""

    data: dict[str, Any]
    predictions: list[dict[str, Any]]


def task_of(data: dict[str, Any], touched: Spans, fps: Fraction, form: str) -> TaskToAdd:
    """Return a task as a server takes it; `data` holds `frames`, which no region passes."""
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
                said = {"start": start_s, "end": min(end_s, length_s), "channel": 0, "labels": [label]}
                region |= {"from_name": "action", "to_name": "audio", "type": "labels"}
                region |= {"original_length": length_s, "value": said}
            result.append(region)
    proposal = [{"model_version": MODEL, "score": 1.0, "result": result}] if result else []
    return {"data": data, "predictions": proposal}

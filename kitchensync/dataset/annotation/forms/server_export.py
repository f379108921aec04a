"""Read Label Studio exports of format JSON: tasks with annotations and predictions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from kitchensync.dataset.annotation.forms.frame_times import MOST_FPS
from kitchensync.shell.untrusted_json import BadJson, parse_json
from kitchensync.task_graphs.errors import BadGraph
from kitchensync.task_graphs.formats.strict_json import Reader, refuse_lone_surrogates

MOST_BYTES = 256 << 20
OF_FILM = ("fps", "frames", "proxy_sha256")
"""Keys of a task that describe its video."""


@dataclass(frozen=True)
class Annotation:
    """Annotation of a video by a person, or prediction by a program; `result` as on the server."""

    id: int
    by: str
    was_cancelled: bool
    result: list[dict[str, Any]]
    place: str
    raw: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Draft:
    """An annotation that was never submitted: it does not count."""

    by: str
    regions: int
    place: str


@dataclass(frozen=True)
class Task:
    """A video to annotate; `frames` and `fps` are those stated in the task."""

    id: int
    recording: str
    frames: int | None
    fps: float | None
    annotations: tuple[Annotation, ...]
    prediction: Annotation | None
    data: dict[str, Any] = field(default_factory=dict)
    drafts: tuple[Draft, ...] = ()


def parse_export(content: bytes, name: str) -> list[Task]:
    """Read the tasks of an export. Raises BadGraph."""
    read = Reader(name)
    try:
        export = parse_json(content, most_bytes=MOST_BYTES)
    except BadJson as error:
        raise BadGraph(name, "", str(error)) from error
    refuse_lone_surrogates(export, content.decode(), name)
    return tasks_of(read.array(export, ""), name)


def tasks_of(rows: list[Any], name: str) -> list[Task]:
    """Read the tasks of a server; tasks of the same recording, which was imported twice, are merged.

    Raises BadGraph, also if two tasks of a recording have different videos.
    """
    read = Reader(name)
    tasks: dict[str, Task] = {}
    for number, row in enumerate(rows, 1):
        task = _task(row, f"task {number}", read)
        first = tasks.setdefault(task.recording, task)
        if first is task:
            continue
        if any(first.data.get(key) != task.data.get(key) for key in OF_FILM):
            why = f"recording {task.recording} is in task {first.id} too, with another video; delete one of them"
            raise read.fail(f"task {task.id}", why)
        tasks[task.recording] = replace(
            first,
            annotations=first.annotations + task.annotations,
            prediction=first.prediction or task.prediction,
            drafts=first.drafts + task.drafts,
        )
    return [*tasks.values()]


def _task(value: Any, place: str, read: Reader) -> Task:
    row = read.object(value, place)
    if "data" not in row:
        why = "is in the form JSON_MIN, which drops predictions and cancelled annotations; export as JSON"
        is_flat = {"annotation_id", "annotator", "recording_id", "video", "video_url"} & row.keys()
        raise read.fail(place, why if is_flat else "has no data")
    place = f"task {row.get('id', place[5:])}"
    data = read.object(row["data"], f"{place} data")
    frames = data.get("frames")
    fps = data.get("fps")
    drafts = []
    for listed in read.array(row.get("drafts") or [], f"{place} drafts"):
        draft = read.object(listed, f"{place} draft")
        if regions := len(read.array(draft.get("result") or [], f"{place} draft")):
            drafts.append(Draft(str(draft.get("user", "")), regions, f"{place} draft {draft.get('id', '?')}"))
    return Task(
        id=read.whole(row.get("id", 0), f"{place} id"),
        recording=read.label(data.get("recording_id", data.get("title")), f"{place} recording_id"),
        frames=None if frames is None else read.whole(frames, f"{place} frames"),
        fps=None if fps is None else _rate(fps, f"{place} fps", read),
        annotations=tuple(_annotations(row, "annotations", place, read)),
        prediction=next(iter(_annotations(row, "predictions", place, read)), None),
        data=data,
        drafts=tuple(drafts),
    )


def _annotations(task: dict[str, Any], key: str, place: str, read: Reader) -> list[Annotation]:
    """Read annotations or predictions; newer servers return only the numbers of predictions, which are skipped."""
    annotations = []
    for position, value in enumerate(read.array(task.get(key) or [], f"{place} {key}"), 1):
        if key == "predictions" and type(value) is int:
            continue
        at = f"{place} {key[:-1]} {position}"
        row = read.object(value, at)
        number = read.whole(row.get("id", 0), f"{at} id")
        at = f"{place} {key[:-1]} {number}" if number else at
        result = [read.object(entry, at) for entry in read.array(row.get("result") or [], at)]
        by = row.get("completed_by", "")
        by = by.get("id", by.get("email", "")) if isinstance(by, dict) else by
        is_cancelled = row.get("was_cancelled") is True
        annotations.append(Annotation(number, str(by), is_cancelled, result, at, row))
    return annotations


def _rate(value: Any, place: str, read: Reader) -> float:
    if type(value) in (int, float) and 1 <= value <= MOST_FPS:
        return float(value)
    raise read.fail(place, f"not a number of frames a second, 1 to {MOST_FPS}")

"""Read a file of an annotation tool, by recording."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TypedDict

from kitchensync.dataset.annotation.forms.elan import TIMES, parse_elan
from kitchensync.dataset.annotation.forms.frame_times import is_rate, rate_near
from kitchensync.dataset.annotation.forms.label_config import parse_labels
from kitchensync.dataset.annotation.forms.marked_steps import (
    TIMELINE,
    Marked,
    MarkedFilm,
    Steps,
    StepsJson,
    read_steps,
    steps_of,
)
from kitchensync.dataset.annotation.forms.narration import LabelNarration, read_narration
from kitchensync.dataset.annotation.forms.server_export import MOST_BYTES, Task, parse_export
from kitchensync.task_graphs.formats.graph_files import read_bytes
from kitchensync.task_graphs.formats.strict_json import Reader


class MarkedRecording(StepsJson):
    """Marked steps in a video of `duration_s`, and transcribed narrations, by label."""

    duration_s: float | None
    audio: dict[str, LabelNarration]


class ReadFile(TypedDict):
    """Content of a file: `fps` of the videos, recordings by name, and recordings whose task has another rate."""

    fps: str | None
    recordings: dict[str, MarkedRecording]
    other_rates: list[str]


def read_file(path: Path, config: Path | None, fps: Fraction | None) -> ReadFile:
    """Read an export; without `fps` the rate is that of the tasks. Raises BadGraph."""
    labels = parse_labels(read_bytes(config, most_bytes=MOST_BYTES), config.name) if config else None
    if (marked := elan_marks(path)) is not None:
        steps: MarkedRecording = {"duration_s": None, **steps_of(marked, labels).as_json(None), "audio": {}}
        return {"fps": str(fps) if fps else None, "recordings": {marked.recording: steps}, "other_rates": []}
    tasks = parse_export(read_bytes(path, most_bytes=MOST_BYTES), path.name)
    read = Reader(path.name)
    fps = fps or _rate(tasks, read)
    return {
        "fps": str(fps) if fps else None,
        "recordings": {task.recording: _recording(task, fps, labels, read) for task in tasks},
        "other_rates": [
            task.recording for task in tasks if fps and task.fps is not None and not is_rate(task.fps, fps)
        ],
    }


def elan_marks(path: Path) -> Marked | None:
    """Read the marks of an ELAN file; None for other files. Raises BadGraph."""
    if path.suffix != ".eaf":
        return None
    beside = path.with_name(path.name + TIMES)
    times = read_bytes(beside, most_bytes=MOST_BYTES) if beside.exists() else None
    return parse_elan(read_bytes(path, most_bytes=MOST_BYTES), times, path.name)


def _rate(tasks: list[Task], read: Reader) -> Fraction | None:
    """Return the common rate of all tasks with marked frames; None without such tasks. Raises BadGraph."""
    rates = {
        rate_near(task.fps) if task.fps else None
        for task in tasks
        for annotation in (*task.annotations, *([task.prediction] if task.prediction else []))
        if any(entry.get("type") == TIMELINE for entry in annotation.result)
    }
    if None in rates or len(rates) > 1:
        listed = ", ".join(sorted(str(rate or "none stated") for rate in rates))
        raise read.fail("", f"its videos have different frame rates: {listed}; give --fps")
    return next(iter(rates), None)


def _recording(
    task: Task, fps: Fraction | None, labels: frozenset[str] | None, read: Reader
) -> MarkedRecording:
    film = MarkedFilm(fps or Fraction(1), task.frames, labels)
    steps: Steps = read_steps(task, film, read)
    audio = read_narration(task, steps.findings, read)
    length_s = float(task.frames / film.fps) if fps and task.frames else None
    return {"duration_s": length_s, **steps.as_json(length_s), "audio": audio}

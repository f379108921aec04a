"""A file that an annotation tool wrote, as what is in it by recording."""

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
    SaidSteps,
    Steps,
    read_steps,
    steps_of,
)
from kitchensync.dataset.annotation.forms.narration import LabelNarration, read_narration
from kitchensync.dataset.annotation.forms.server_export import MOST_BYTES, Task, parse_export
from kitchensync.task_graphs.formats.graph_files import read_bytes
from kitchensync.task_graphs.formats.strict_json import Reader


class MarkedRecording(SaidSteps):
    """What people marked in a film of `duration_s`, and what they said was spoken, by label."""

    duration_s: float | None
    audio: dict[str, LabelNarration]


class ReadFile(TypedDict):
    """What a file holds: `fps` of the films, recordings by name, and those whose task names another rate."""

    fps: str | None
    recordings: dict[str, MarkedRecording]
    other_rates: list[str]


def read_file(path: Path, config: Path | None, fps: Fraction | None) -> ReadFile:
    """Return `fps` and `recordings` of an export; without `fps` the rate is what the tasks say.

    Raises BadGraph.
    """
    labels = parse_labels(read_bytes(config, most_bytes=MOST_BYTES), config.name) if config else None
    if (found := elan_marks(path)) is not None:
        steps: MarkedRecording = {"duration_s": None, **steps_of(found, labels).said(None), "audio": {}}
        return {"fps": str(fps) if fps else None, "recordings": {found.recording: steps}, "other_rates": []}
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
    """Return what an ELAN file marks; None of a file of another kind. Raises BadGraph."""
    if path.suffix != ".eaf":
        return None
    beside = path.with_name(path.name + TIMES)
    times = read_bytes(beside, most_bytes=MOST_BYTES) if beside.exists() else None
    return parse_elan(read_bytes(path, most_bytes=MOST_BYTES), times, path.name)


def _rate(tasks: list[Task], read: Reader) -> Fraction | None:
    """Return the one rate of all tasks that have frames; None where none has. Raises BadGraph."""
    rates = {
        rate_near(task.fps) if task.fps else None
        for task in tasks
        for one in (*task.annotations, *([task.prediction] if task.prediction else []))
        if any(entry.get("type") == TIMELINE for entry in one.result)
    }
    if None in rates or len(rates) > 1:
        named = ", ".join(sorted(str(rate or "none stated") for rate in rates))
        raise read.fail("", f"its films have these numbers of frames a second: {named}; give --fps")
    return next(iter(rates), None)


def _recording(
    task: Task, fps: Fraction | None, labels: frozenset[str] | None, read: Reader
) -> MarkedRecording:
    film = MarkedFilm(fps or Fraction(1), task.frames, labels)
    steps: Steps = read_steps(task, film, read)
    audio = read_narration(task, steps.findings, read)
    length_s = float(task.frames / film.fps) if fps and task.frames else None
    return {"duration_s": length_s, **steps.said(length_s), "audio": audio}

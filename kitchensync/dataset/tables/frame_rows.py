"""Which pictures of a film show nothing wrong, and those that a model of normal cooking may be trained with."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kitchensync.dataset.source.film_pictures import FilmOf
from kitchensync.dataset.tables.csv_text import csv_cell
from kitchensync.shell.array_types import Mask
from kitchensync.task_graphs.formats.annotations import AnnotatedRecording

COLUMNS = ("recording", "frame", "second", "normal", "capture_ns")
TRAINING_COLUMNS = ("recording", "frame")


def is_normal(one: AnnotatedRecording, seconds: np.ndarray) -> Mask:
    """Tell of moments of the film, (n,) seconds, whether they lie in no step that has an error."""
    normal = np.ones(len(seconds), dtype=bool)
    for entry in one.entries:
        if entry.performed and entry.errors:
            normal &= ~((seconds >= entry.start_s) & (seconds < entry.end_s))
    return normal


def frame_rows(one: AnnotatedRecording, film: FilmOf, every: int, unknown_ns: int) -> Iterator[str]:
    """Yield a line of the table for each picture; the time of capture is empty where it is `unknown_ns`."""
    numbers = film.shown(every)
    seconds = numbers / float(film.fps)
    taken = np.full(len(numbers), unknown_ns) if film.capture_ns is None else film.capture_ns[numbers]
    name = csv_cell(one.recording_id)
    for number, second, normal, at in zip(
        numbers.tolist(), seconds.tolist(), is_normal(one, seconds).tolist(), taken.tolist(), strict=True
    ):
        yield f"{name},{number},{second:.4f},{int(normal)},{'' if at == unknown_ns else at}\n"


def training_rows(one: AnnotatedRecording, film: FilmOf, every: int) -> Iterator[str]:
    """Yield a line for each picture of a recording without errors; none of another one."""
    if not one.is_error:
        name = csv_cell(one.recording_id)
        for number in film.shown(every).tolist():
            yield f"{name},{number}\n"

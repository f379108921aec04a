"""Tables of video frames: whether each is normal, and the frames to train a model of normal cooking with."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kitchensync.dataset.source.film_frames import FilmFrames
from kitchensync.dataset.tables.csv_text import csv_cell
from kitchensync.shell.array_types import Mask
from kitchensync.task_graphs.formats.annotations import AnnotatedRecording

COLUMNS = ("recording", "frame", "second", "normal", "capture_ns")
TRAINING_COLUMNS = ("recording", "frame")


def is_normal(recording: AnnotatedRecording, seconds: np.ndarray) -> Mask:
    """Return which times of the video, (n,) seconds, are in no step with an error, (n,)."""
    normal = np.ones(len(seconds), dtype=bool)
    for entry in recording.entries:
        if entry.performed and entry.errors:
            normal &= ~((seconds >= entry.start_s) & (seconds < entry.end_s))
    return normal


def frame_rows(recording: AnnotatedRecording, film: FilmFrames, every: int, unknown_ns: int) -> Iterator[str]:
    """Yield a line of the table for each frame; a capture time of `unknown_ns` is left empty."""
    numbers = film.shown(every)
    seconds = numbers / float(film.fps)
    capture_ns = np.full(len(numbers), unknown_ns) if film.capture_ns is None else film.capture_ns[numbers]
    name, normal = csv_cell(recording.recording_id), is_normal(recording, seconds)
    for number, second, is_ok, at_ns in zip(
        numbers.tolist(), seconds.tolist(), normal.tolist(), capture_ns.tolist(), strict=True
    ):
        yield f"{name},{number},{second:.4f},{int(is_ok)},{'' if at_ns == unknown_ns else at_ns}\n"


def training_rows(recording: AnnotatedRecording, film: FilmFrames, every: int) -> Iterator[str]:
    """Yield a line for each frame of a recording without errors; nothing for other recordings."""
    if not recording.is_error:
        name = csv_cell(recording.recording_id)
        for number in film.shown(every).tolist():
            yield f"{name},{number}\n"

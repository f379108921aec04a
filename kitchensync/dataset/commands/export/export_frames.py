"""`kitchensync export frames`: which video frames show no error."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import chain
from pathlib import Path

import click

from kitchensync.dataset.commands.export_source import (
    FPS,
    Assessed,
    answer,
    read_source,
    read_split,
    source_arguments,
    status_of,
)
from kitchensync.dataset.source.source_films import frames_of_film
from kitchensync.dataset.tables.frame_rows import COLUMNS, TRAINING_COLUMNS, frame_rows, training_rows
from kitchensync.dataset.tables.step_rows import past_the_film
from kitchensync.shell.answer import Answer, answers
from kitchensync.storage.options.given_path import given_path
from kitchensync.storage.options.output_options import OutputFolder, output
from kitchensync.storage.options.outputs import check_output, written
from kitchensync.storage.timeline.film_times import UNKNOWN

TABLE, TRAINING = "frames.csv", "normal_training.csv"


class FrameRows(Assessed):
    """The object `export-frames/1`."""

    recordings: int
    pictures: int
    "Rows of frames.csv."
    training: int
    "Rows of normal_training.csv."
    hidden: int
    "Frames in privacy pauses, which are left out."
    training_recordings: int


@click.command()
@source_arguments
@output("out", "--out", kind=OutputFolder(), required=True, help=f"Folder of {TABLE} and {TRAINING}.")
@FPS
@click.option(
    "--every", type=click.IntRange(1), default=1, show_default=True, help="Take every N-th frame only."
)
@click.option(
    "--split",
    type=given_path(exists=True, dir_okay=False),
    help="File of parts, as `release split` writes it: train with recordings of its part `train` only.",
)
@answers("export-frames/1")
def frames(
    paths: tuple[Path, ...], strict: bool, out: Path, force: bool, fps: str, every: int, split: Path | None
) -> Answer[FrameRows]:
    """Write for each frame of each video whether it is normal, and which frames to train on.

    frames.csv: recording, frame (from 0), second, normal, capture_ns; `normal` is 0 within a step that has an error.
    normal_training.csv: recording, frame, of recordings without any error. Frames of own recordings have their
    capture time; frames of a privacy pause are left out. For other videos the length and --fps give the number of
    frames.

    \b
    Example:
      kitchensync export frames our-kitchens --every 30 --out frames
    """
    source = read_source(paths)
    recordings = source.data.annotations.recordings
    films = {r.recording_id: frames_of_film(source, r.recording_id, Fraction(fps)) for r in recordings}
    training = [recording for recording in recordings if not recording.is_error]
    if split is not None:
        ids = set(read_split(split, source)["train"])
        training = [recording for recording in training if recording.recording_id in ids]
    for name in (TABLE, TRAINING):
        check_output(out / name, force=force)
    all_rows = (frame_rows(r, films[r.recording_id], every, UNKNOWN) for r in recordings)
    rows_to_train = (training_rows(r, films[r.recording_id], every) for r in training)
    warnings = past_the_film(source.data) + source.warnings
    report: FrameRows = {
        "status": status_of(warnings),
        "recordings": len(recordings),
        "pictures": _write(out / TABLE, COLUMNS, chain.from_iterable(all_rows), force=force),
        "training": _write(out / TRAINING, TRAINING_COLUMNS, chain.from_iterable(rows_to_train), force=force),
        "hidden": sum(int(film.hidden.sum()) for film in films.values() if film.hidden is not None),
        "training_recordings": len(training),
        "warnings": warnings,
    }
    summary = f"{report['pictures']:,} frames, {report['training']:,} to train on, in {out}"
    return answer(report, summary, strict=strict)


def _write(path: Path, columns: tuple[str, ...], lines: Iterable[str], *, force: bool) -> int:
    """Write lines below their header; return the number of lines. Raises OutputRefused."""
    count = 0
    with written(path, force=force) as part, part.open("w", encoding="utf-8", newline="") as file:
        file.write(",".join(columns) + "\n")
        for count, line in enumerate(lines, start=1):  # noqa: B007
            file.write(line)
    return count

"""`kitchensync export frames`: which pictures show nothing wrong."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import chain
from pathlib import Path

import click

from kitchensync.dataset.commands.export_source import FPS, answer, given, read_split, source
from kitchensync.shell.answer import Answer, answers
from kitchensync.storage.options.given_path import given_path
from kitchensync.storage.options.output_options import OutputFolder, output
from kitchensync.storage.options.outputs import check_output, written

TABLE, TRAINING = "frames.csv", "normal_training.csv"


@click.command()
@source
@output("out", "--out", kind=OutputFolder(), required=True, help=f"Folder of {TABLE} and {TRAINING}.")
@FPS
@click.option(
    "--every", type=click.IntRange(1), default=1, show_default=True, help="Take each N-th picture only."
)
@click.option(
    "--split",
    type=given_path(exists=True, dir_okay=False),
    help="File of parts, as `release split` writes it: train with recordings of its part `train` only.",
)
@answers("export-frames/1")
def frames(
    paths: tuple[Path, ...], strict: bool, out: Path, force: bool, fps: str, every: int, split: Path | None
) -> Answer:
    """Write for each frame of each video whether it is normal, and which frames to train on.

    frames.csv: recording, frame (from 0), second, normal, capture_ns; `normal` is 0 within a step that has an error.
    normal_training.csv: recording, frame, of recordings without any error. Pictures of own recordings are counted in
    their frame index and have the time of capture; what was filmed in a privacy pause is left out. For other films
    the length and --fps give how many there are.

    \b
    Example:
      kitchensync export frames our-kitchens --every 30 --out frames
    """
    from kitchensync.dataset.source.given_films import film_of
    from kitchensync.dataset.tables.frame_rows import COLUMNS, TRAINING_COLUMNS, frame_rows, training_rows
    from kitchensync.dataset.tables.step_rows import past_the_film
    from kitchensync.storage.timeline.film_times import UNKNOWN

    found = given(paths)
    recordings = found.data.annotations.recordings
    films = {one.recording_id: film_of(found, one.recording_id, Fraction(fps)) for one in recordings}
    trained = [one for one in recordings if not one.is_error]
    if split is not None:
        ids = set(read_split(split, found)["train"])
        trained = [one for one in trained if one.recording_id in ids]
    for name in (TABLE, TRAINING):
        check_output(out / name, force=force)
    table = (frame_rows(one, films[one.recording_id], every, UNKNOWN) for one in recordings)
    listed = (training_rows(one, films[one.recording_id], every) for one in trained)
    counts = {
        "pictures": _write(out / TABLE, COLUMNS, chain.from_iterable(table), force=force),
        "training": _write(out / TRAINING, TRAINING_COLUMNS, chain.from_iterable(listed), force=force),
    }
    hidden = sum(int(film.hidden.sum()) for film in films.values() if film.hidden is not None)
    said = {"recordings": len(recordings), **counts, "hidden": hidden, "training_recordings": len(trained)}
    words = f"{counts['pictures']:,} pictures, {counts['training']:,} to train on, in {out}"
    return answer(said, past_the_film(found.data) + found.warnings, words, strict=strict)


def _write(path: Path, columns: tuple[str, ...], lines: Iterable[str], *, force: bool) -> int:
    """Write lines as they come below their header; return how many there are. Raises OutputRefused."""
    count = 0
    with written(path, force=force) as part, part.open("w", encoding="utf-8", newline="") as file:
        file.write(",".join(columns) + "\n")
        for count, line in enumerate(lines, start=1):  # noqa: B007
            file.write(line)
    return count

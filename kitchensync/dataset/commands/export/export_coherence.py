"""`kitchensync export coherence`: examples for coherent mistake detection."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kitchensync.dataset.commands.export_source import (
    CORRECTED,
    answer,
    given,
    in_parts,
    not_here,
    read_split,
    source,
    write_list,
)
from kitchensync.dataset.commands.options import DRAW_SEED
from kitchensync.shell.answer import Answer, answers
from kitchensync.shell.progress import Bar
from kitchensync.storage.options.given_path import given_path
from kitchensync.storage.options.output_options import OutputPath, output_file
from kitchensync.storage.options.outputs import write_into, write_output

if TYPE_CHECKING:
    from collections import Counter

    from kitchensync.dataset.source.given_data import GivenData
    from kitchensync.dataset.source.given_films import OpenFilm
    from kitchensync.dataset.tables.boundary_examples import BoundaryExample, Deed
    from kitchensync.dataset.tables.coherence_examples import JudgedStep, StepExample
    from kitchensync.task_graphs.formats.annotations import AnnotatedRecording


@click.command()
@source
@output_file("out", "--out", required=True, metavar="FILE.json", help="List to write.")
@click.option(
    "--split",
    type=given_path(exists=True, dir_okay=False),
    help="File of parts, as `release split` writes it: count the examples by part.",
)
@click.option(
    "--frames",
    is_flag=True,
    help="Write pictures into a folder beside FILE.json, <name>.frames: of each half second of the single frames' "
    "range the sharpest one; with --boundaries the one picture of each example.",
)
@click.option(
    "--boundaries",
    is_flag=True,
    help="Show each step by the picture behind it, and mistakes by the one in front of it and by those of other "
    "recordings in which another verb, another noun, or both were done.",
)
@DRAW_SEED
@click.option(
    "--sample",
    "wanted",
    type=click.IntRange(1),
    help="With --boundaries: as many successes as mistakes, at most so many of each in a part, kinds of mistakes in "
    "turn  [default: all].",
)
@click.option(
    "--actions",
    type=OutputPath(),
    metavar="FILE.csv",
    help="With --boundaries: table of the verb and noun of each text, written where it is not there yet. Edit it so "
    "that words of one meaning are one word, and run again.",
)
@CORRECTED
@answers("export-coherence/1")
def coherence(
    paths: tuple[Path, ...],
    strict: bool,
    out: Path,
    force: bool,
    split: Path | None,
    frames: bool,
    boundaries: bool,
    seed: int,
    wanted: int | None,
    actions: Path | None,
    corrected: bool,
) -> Answer:
    """Write steps as examples for coherent mistake detection: an instruction, a range of the video, mistake or not.

    By the rules of the published loader: only errors that a picture can show make a mistake; steps with none but
    others (order, timing, temperature, measurement), steps not done and those under 0.1 s are left out and counted.
    The range from..to is sampled ten times a second; `single_frame_range` are the samples of which one picture is
    chosen.

    --boundaries takes the steps without such errors. An example then has `step` (its start and end), `recording` and
    `time` of its picture, and as mistake_type Action Incomplete, MisalignSRL_V, MisalignSRL_ARG1 or
    MisalignSRL_V_ARG1; with --split, other recordings are of the same part. With --frames, steps that look alike
    before and after (cosine of the pixels 0.95 or more) are left out, and dark ones. --sample draws as many successes
    as mistakes.

    As published, a step of another recording is shown at a moment inside it, steps that repeat the one before them
    stay, and only black pictures are dark: that is warned of, and --corrected does what was meant; it also takes the
    sharpest of five pictures.

    \b
    Example:
      kitchensync export coherence our-kitchens --out examples.json
    """
    from kitchensync.dataset.tables.boundary_examples import balanced, boundary_examples, published_faults
    from kitchensync.dataset.tables.coherence_examples import all_examples, counted, recording_of
    from kitchensync.dataset.tables.step_rows import past_the_film

    for value, why in (
        (corrected, "--corrected goes with --boundaries; the other form has no known fault"),
        (wanted, "--sample goes with --boundaries; the other form is as published"),
        (actions, "--actions goes with --boundaries; the other form shows no other verb or noun"),
    ):
        if value and not boundaries:
            raise click.UsageError(why)
    found = given(paths)
    recordings = found.data.annotations.recordings
    parts = read_split(split, found) if split else {}
    part_of = {one: part for part, ids in parts.items() for one in ids}
    warnings = past_the_film(found.data) + found.warnings
    folder = out.with_suffix(".frames")
    rows: Sequence[JudgedStep]
    said: dict[str, object]
    if boundaries:
        made, left_out, repeated = boundary_examples(
            recordings, _actions(actions, recordings, warnings), part_of, seed, corrected=corrected
        )
        warnings += [] if corrected else published_faults(repeated, frames=frames)
        if wanted and parts:
            made = in_parts(made, part_of, recording_of, warnings)
        draw = partial(balanced, part_of=part_of, wanted=wanted, seed=seed) if wanted else list
        if frames:
            made, absent = _boundary_frames(
                found, made, left_out, folder, draw, force=force, corrected=corrected
            )
            warnings += absent
        else:
            made = draw(made)
        rows = made
    else:
        shown, left_out = all_examples(recordings)
        warnings += _sharpest_frames(found, shown, folder, force=force) if frames else []
        rows = shown
    said = counted(rows, left_out, part_of)
    said |= {} if boundaries else {"samples": sum(row["samples"] for row in shown)}
    said |= {"actions": str(actions)} if actions else {}
    said |= {"frames": sum(len(row["frames"]) for row in rows)} if frames else {}
    write_list(out, rows, force=force)
    return answer(said | {"file": str(out)}, warnings, f"{len(rows):,} examples in {out}", strict=strict)


def _actions(
    path: Path | None, recordings: Sequence[AnnotatedRecording], warnings: list[str]
) -> dict[str, Deed]:
    """Return verb and noun of each text, by the table where it is there; else write it.

    Raises BadGraph, OutputRefused.
    """
    from kitchensync.dataset.tables.boundary_examples import actions_of, actions_table, read_actions

    own = actions_of(recordings)
    if path is None:
        return own
    if not path.exists():
        write_output(path, actions_table(own).encode(), force=False)
        return own
    table = read_actions(path)
    for names, why in (
        (
            own.keys() - table.keys(),
            "texts of steps not in the table, whose verb and noun are read from the text",
        ),
        (table.keys() - own.keys(), "texts in the table that no step has"),
    ):
        if names:
            warnings.append(f"{path.name}: {len(names)} {why}: {sorted(names)[0]}")
    return own | table


def _sharpest_frames(found: GivenData, rows: list[StepExample], folder: Path, *, force: bool) -> list[str]:
    """Write the pictures and name them in the rows; say which films are not here. Raises OutputRefused."""
    from kitchensync.dataset.examples.coherence_frames import sharpest_frames
    from kitchensync.dataset.tables.coherence_examples import recording_of

    absent: list[str] = []
    for row in rows:
        row["frames"], row["frame_times"] = [], []
    for recording, film in _films(found, absent):
        ours = [row for row in rows if recording_of(row) == recording]
        for example, name, at_s, content in sharpest_frames(film, ours):
            write_into(folder, {name: content}, force=force)
            example["frames"] += [f"{folder.name}/{name}"]
            example["frame_times"] += [round(at_s, 4)]
    return not_here(absent)


def _boundary_frames(
    found: GivenData,
    rows: list[BoundaryExample],
    left_out: Counter[str],
    folder: Path,
    draw: Callable[[list[BoundaryExample]], list[BoundaryExample]],
    *,
    force: bool,
    corrected: bool,
) -> tuple[list[BoundaryExample], list[str]]:
    """Write the pictures; return those drawn of the examples that they show, and which films are not here.

    Raises OutputRefused.
    """
    from kitchensync.dataset.examples.coherence_frames import BoundaryFrames

    look, absent, written = BoundaryFrames(rows, corrected=corrected), list[str](), set[str]()
    for recording, film in _films(found, absent):
        for name, content in look.look(film, recording):
            write_into(folder, {name: content}, force=force)
            written.add(f"{folder.name}/{name}")
    kept: list[BoundaryExample] = []
    for row in rows:
        if why := look.why_left_out(row):
            left_out[why] += 1
        else:
            kept.append({**row, **look.named(row, folder.name)})
    kept = draw(kept)
    for name in written.difference(*(row["frames"] for row in kept)):
        (folder.parent / name).unlink()
    return kept, not_here(absent)


def _films(found: GivenData, absent: list[str]) -> Iterator[tuple[str, OpenFilm]]:
    """Yield the films one after another; name those that are not here."""
    from kitchensync.dataset.source.given_films import open_film

    recordings = [one.recording_id for one in found.data.annotations.recordings]
    with Bar(unit="films") as bar:
        for done, recording in enumerate(recordings):
            bar.show(done, len(recordings), recording)
            with open_film(found, recording) as film:
                if film is None:
                    absent.append(recording)
                else:
                    yield recording, film

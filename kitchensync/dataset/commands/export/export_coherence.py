"""`kitchensync export coherence`: examples for coherent mistake detection."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import click

from kitchensync.dataset.commands.export_source import (
    CORRECTED,
    Assessed,
    answer,
    in_parts,
    missing_films,
    read_source,
    read_split,
    source_arguments,
    status_of,
    write_list,
)
from kitchensync.dataset.commands.options import DRAW_SEED
from kitchensync.dataset.examples.coherence_frames import BoundaryFrames, sharpest_frames
from kitchensync.dataset.source.source_data import SourceData
from kitchensync.dataset.source.source_films import OpenFilm, open_film
from kitchensync.dataset.tables.boundary_examples import (
    BoundaryExample,
    Deed,
    actions_of,
    actions_table,
    balanced,
    boundary_examples,
    published_faults,
    read_actions,
)
from kitchensync.dataset.tables.coherence_examples import (
    ExampleCounts,
    JudgedStep,
    StepExample,
    all_examples,
    count_examples,
    recording_of,
)
from kitchensync.dataset.tables.step_rows import past_the_film
from kitchensync.shell.answer import Answer, answers
from kitchensync.shell.progress import Bar
from kitchensync.storage.options.given_path import given_path
from kitchensync.storage.options.output_options import OutputPath, output_file
from kitchensync.storage.options.outputs import write_into, write_output
from kitchensync.task_graphs.formats.annotations import AnnotatedRecording

if TYPE_CHECKING:
    from collections import Counter


class _ByOption(TypedDict, total=False):
    samples: int
    "Without --boundaries."
    actions: str
    "With --actions: the table."
    frames: int
    "With --frames: frames written."


class CoherenceExamples(Assessed, ExampleCounts, _ByOption):
    """The object `export-coherence/1`."""

    file: str


@click.command()
@source_arguments
@output_file("out", "--out", required=True, metavar="FILE.json", help="List to write.")
@click.option(
    "--split",
    type=given_path(exists=True, dir_okay=False),
    help="File of parts, as `release split` writes it: count the examples by part.",
)
@click.option(
    "--frames",
    is_flag=True,
    help="Write frames into a folder beside FILE.json, <name>.frames: the sharpest of each half second of the "
    "range of single frames; with --boundaries the one frame of each example.",
)
@click.option(
    "--boundaries",
    is_flag=True,
    help="Show each step by the frame after it, and mistakes by the frame before it and by frames of other "
    "recordings in which another verb, another noun, or both were done.",
)
@DRAW_SEED
@click.option(
    "--sample",
    "count",
    type=click.IntRange(1),
    help="With --boundaries: as many successes as mistakes, at most this many of each in a part, kinds of mistakes "
    "in turn  [default: all].",
)
@click.option(
    "--actions",
    type=OutputPath(),
    metavar="FILE.csv",
    help="With --boundaries: table of the verb and noun of each text, written if it does not exist. Edit it so that "
    "synonyms become one word, and run again.",
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
    count: int | None,
    actions: Path | None,
    corrected: bool,
) -> Answer[CoherenceExamples]:
    """Write steps as examples for coherent mistake detection: an instruction, a range of the video, mistake or not.

    By the rules of the published loader: only errors that a frame can show make a mistake. Steps with only other
    errors (order, timing, temperature, measurement), steps not done and steps under 0.1 s are left out and counted.
    The range from..to is sampled ten times a second; one frame is chosen among the samples `single_frame_range`.

    --boundaries takes the steps without such errors. An example then has `step` (its start and end), `recording` and
    `time` of its frame, and as mistake_type Action Incomplete, MisalignSRL_V, MisalignSRL_ARG1 or
    MisalignSRL_V_ARG1; with --split, other recordings come from the same part. With --frames, dark steps and steps
    that look alike before and after (cosine of the pixels 0.95 or more) are left out. --sample draws as many
    successes as mistakes.

    As published, a step of another recording is shown at a moment inside it, steps that repeat the previous step
    stay, and only black frames are dark. This gives a warning; --corrected does what was meant, and also takes the
    sharpest of five frames.

    \b
    Example:
      kitchensync export coherence our-kitchens --out examples.json
    """
    for value, why in (
        (corrected, "--corrected goes with --boundaries; the other form has no known fault"),
        (count, "--sample goes with --boundaries; the other form is as published"),
        (actions, "--actions goes with --boundaries; the other form shows no other verb or noun"),
    ):
        if value and not boundaries:
            raise click.UsageError(why)
    source = read_source(paths)
    recordings = source.data.annotations.recordings
    parts = read_split(split, source) if split else {}
    part_of = {recording: part for part, ids in parts.items() for recording in ids}
    warnings = past_the_film(source.data) + source.warnings
    folder = out.with_suffix(".frames")
    rows: Sequence[JudgedStep]
    if boundaries:
        examples, left_out, repeated = boundary_examples(
            recordings, _actions(actions, recordings, warnings), part_of, seed, corrected=corrected
        )
        warnings += [] if corrected else published_faults(repeated, frames=frames)
        if count and parts:
            examples = in_parts(examples, part_of, recording_of, warnings)
        draw = partial(balanced, part_of=part_of, most=count, seed=seed) if count else list
        if frames:
            examples, absent = _boundary_frames(
                source, examples, left_out, folder, draw, force=force, corrected=corrected
            )
            warnings += absent
        else:
            examples = draw(examples)
        rows = examples
    else:
        step_examples, left_out = all_examples(recordings)
        warnings += _sharpest_frames(source, step_examples, folder, force=force) if frames else []
        rows = step_examples
    more: _ByOption = {} if boundaries else {"samples": sum(row["samples"] for row in step_examples)}
    if actions:
        more["actions"] = str(actions)
    if frames:
        more["frames"] = sum(len(row["frames"]) for row in rows)
    write_list(out, rows, force=force)
    report: CoherenceExamples = {
        "status": status_of(warnings),
        **count_examples(rows, left_out, part_of),
        **more,
        "file": str(out),
        "warnings": warnings,
    }
    return answer(report, f"{len(rows):,} examples in {out}", strict=strict)


def _actions(
    path: Path | None, recordings: Sequence[AnnotatedRecording], warnings: list[str]
) -> dict[str, Deed]:
    """Return verb and noun of each text, from the table if it exists; else write the table.

    Raises BadGraph, OutputRefused.
    """
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
            "step texts are not in the table; their verb and noun are parsed from the text",
        ),
        (table.keys() - own.keys(), "texts of the table belong to no step"),
    ):
        if names:
            warnings.append(f"{path.name}: {len(names)} {why}: {sorted(names)[0]}")
    return own | table


def _sharpest_frames(source: SourceData, rows: list[StepExample], folder: Path, *, force: bool) -> list[str]:
    """Write the frames and add their names to the rows; return warnings. Raises OutputRefused."""
    absent: list[str] = []
    for row in rows:
        row["frames"], row["frame_times"] = [], []
    for recording, film in _films(source, absent):
        of_recording = [row for row in rows if recording_of(row) == recording]
        for example, name, at_s, content in sharpest_frames(film, of_recording):
            write_into(folder, {name: content}, force=force)
            example["frames"] += [f"{folder.name}/{name}"]
            example["frame_times"] += [round(at_s, 4)]
    return missing_films(absent)


def _boundary_frames(
    source: SourceData,
    rows: list[BoundaryExample],
    left_out: Counter[str],
    folder: Path,
    draw: Callable[[list[BoundaryExample]], list[BoundaryExample]],
    *,
    force: bool,
    corrected: bool,
) -> tuple[list[BoundaryExample], list[str]]:
    """Write the frames; return the drawn examples with the names of their frames, and warnings.

    Raises OutputRefused.
    """
    frames, absent, written = BoundaryFrames(rows, corrected=corrected), list[str](), set[str]()
    for recording, film in _films(source, absent):
        for name, content in frames.extract(film, recording):
            write_into(folder, {name: content}, force=force)
            written.add(f"{folder.name}/{name}")
    kept: list[BoundaryExample] = []
    for row in rows:
        if why := frames.why_left_out(row):
            left_out[why] += 1
        else:
            kept.append({**row, **frames.names_of(row, folder.name)})
    kept = draw(kept)
    # Which examples are kept is known only after all frames were compared.
    for name in written.difference(*(row["frames"] for row in kept)):
        (folder.parent / name).unlink()
    return kept, missing_films(absent)


def _films(source: SourceData, absent: list[str]) -> Iterator[tuple[str, OpenFilm]]:
    """Yield the videos one after another; append recordings without a video to `absent`."""
    ids = [recording.recording_id for recording in source.data.annotations.recordings]
    with Bar(unit="films") as bar:
        for done, recording in enumerate(ids):
            bar.show(done, len(ids), recording)
            with open_film(source, recording) as film:
                if film is None:
                    absent.append(recording)
                else:
                    yield recording, film

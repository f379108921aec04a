"""`kitchensync export seconds`: sub-segments of each step, for error recognition."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from kitchensync.dataset.commands.export_source import (
    CORRECTED,
    ExportedList,
    answer,
    read_source,
    source_arguments,
    status_of,
)
from kitchensync.dataset.tables.csv_text import csv_text
from kitchensync.dataset.tables.seconds import (
    COLUMNS,
    LABELS,
    SubSegments,
    Task,
    with_both_labels,
    with_several_categories,
)
from kitchensync.dataset.tables.step_rows import past_the_film
from kitchensync.shell.answer import Answer, answers
from kitchensync.storage.options.output_options import output_file
from kitchensync.storage.options.outputs import write_output


class SecondRows(ExportedList):
    """The object `export-seconds/1`."""

    rows: int
    labels: dict[str, int]
    "Label: rows with it."


@click.command()
@source_arguments
@output_file("out", "--out", required=True, metavar="FILE.csv", help="Table to write.")
@click.option(
    "--window", type=click.Choice(["1", "2"]), default="1", show_default=True, help="Seconds of a row."
)
@click.option(
    "--task",
    type=click.Choice(["er", "eer", "ecr"]),
    default="er",
    show_default=True,
    help="er: has the step an error (1) or not (0); eer: the same for the first half of each step; ecr: which "
    "category (preparation 2, temperature 3, measurement 4, timing 5, technique 6, another or none 0).",
)
@click.option(
    "--category",
    type=click.Choice(list(LABELS)),
    help="With --task ecr: label 1 for the steps of this category, else 0.",
)
@click.option(
    "--grid",
    type=click.Choice(["recording", "segment"]),
    default="recording",
    show_default=True,
    help="Count whole seconds of the recording, a step's entries joined; or from the start of each segment.",
)
@CORRECTED
@answers("export-seconds/1")
def seconds(
    paths: tuple[Path, ...],
    strict: bool,
    out: Path,
    force: bool,
    window: str,
    task: Task,
    category: str | None,
    grid: str,
    corrected: bool,
) -> Answer[SecondRows]:
    """Write a row for each second of each step: recording,step_id,second,label.

    `second` is the start of the row, in seconds of the video. By the published rule all rows of a step have the
    label of its last entry, which gives a warning; --corrected gives each entry its own label. The last row of a
    segment may extend beyond its end.

    \b
    Example:
      kitchensync export seconds captaincook4d --task eer --out early.csv
    """
    if category is not None and task != "ecr":
        raise click.UsageError("--category goes with --task ecr")
    if corrected and grid == "segment":
        raise click.UsageError(
            "--corrected is for the recording's grid; by segment each entry has its own label"
        )
    segments = SubSegments(task, int(window), category, by_segment=grid == "segment", corrected=corrected)
    source = read_source(paths)
    recordings = source.data.annotations.recordings
    rows = [row for recording in recordings for row in segments.rows(recording)]
    warnings = past_the_film(source.data) + source.warnings
    several = sum(map(with_several_categories, recordings)) if task == "ecr" and category is None else 0
    if several:
        warnings.append(
            f"{several} steps have several categories and the label of the first; give --category"
        )
    if overruled := sum(map(segments.overruled, recordings)):
        warnings.append(
            f"{overruled} entries have the label of their step's last entry, as published; --corrected keeps each"
        )
    if both := with_both_labels(rows):
        warnings.append(f"{both} seconds have several labels: entries of one step overlap there")
    write_output(out, csv_text(COLUMNS, rows).encode(), force=force)
    labels = Counter(row[3] for row in rows)
    report: SecondRows = {
        "status": status_of(warnings),
        "recordings": len(recordings),
        "rows": len(rows),
        "labels": {str(label): labels[label] for label in sorted(labels)},
        "file": str(out),
        "warnings": warnings,
    }
    return answer(report, f"{len(rows):,} rows in {out}", strict=strict)

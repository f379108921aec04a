"""`kitchensync export steps|keysteps|prompts`: rows, lists or questions about steps."""

from __future__ import annotations

from pathlib import Path

import click

from kitchensync.dataset.commands.export_source import (
    ExportedList,
    answer,
    read_source,
    source_arguments,
    status_of,
    write_list,
)
from kitchensync.dataset.tables.csv_text import csv_text
from kitchensync.dataset.tables.step_rows import COLUMNS, key_steps, past_the_film, step_rows
from kitchensync.dataset.tables.step_rows import prompts as ask_about
from kitchensync.shell.answer import Answer, answers
from kitchensync.storage.options.output_options import output_file
from kitchensync.storage.options.outputs import write_output
from kitchensync.task_graphs.categories import TAG_OF_COLUMN

TABLE = output_file("out", "--out", required=True, metavar="FILE.csv", help="Table to write.")
LIST = output_file("out", "--out", required=True, metavar="FILE.json", help="List to write.")


class StepRows(ExportedList):
    """The object `export-steps/1`."""

    rows: int
    with_errors: int
    "Rows of steps with an error."


class KeyStepLists(ExportedList):
    """The object `export-keysteps/1`."""

    with_errors: int
    "Recordings left out, since they have errors."
    keysteps: int


class StepQuestions(ExportedList):
    """The object `export-prompts/1`."""

    questions: int
    yes: int
    "Questions whose right answer is Yes."


@click.command()
@source_arguments
@TABLE
@answers("export-steps/1")
def steps(paths: tuple[Path, ...], strict: bool, out: Path, force: bool) -> Answer[StepRows]:
    """Write a row for each step: recording, entry, step_id, start, end, error, seven categories, node and text.

    Times are seconds of the video, -1.0 if the step was not done. `error` is 1 if the step has any error; the
    columns preparation, measurement, order, timing, technique, temperature and missing are 1 if it has that error.
    `entry` is the step's place in its recording, from 0. `node` is the node of the recipe, `step_id` the lowest
    node with that text; for a folder in the published form it is the published step id.

    \b
    Example:
      kitchensync export steps our-kitchens --out steps.csv
    """
    source = read_source(paths)
    recordings = source.by_recipe
    rows = [row for recording in recordings for row in step_rows(recording)]
    write_output(out, csv_text(COLUMNS, rows).encode(), force=force)
    warnings = past_the_film(source.data) + source.warnings
    report: StepRows = {
        "status": status_of(warnings),
        "recordings": len(recordings),
        "rows": len(rows),
        "with_errors": sum(row[COLUMNS.index("error")] == 1 for row in rows),
        "file": str(out),
        "warnings": warnings,
    }
    return answer(report, f"{len(rows):,} rows in {out}", strict=strict)


@click.command()
@source_arguments
@LIST
@answers("export-keysteps/1")
def keysteps(paths: tuple[Path, ...], strict: bool, out: Path, force: bool) -> Answer[KeyStepLists]:
    """Write the steps of each recording without errors in the order in which they were done, with times.

    Procedure learning is trained with this list. Recordings with errors are left out and counted.

    \b
    Example:
      kitchensync export keysteps our-kitchens --out keysteps.json
    """
    source = read_source(paths)
    recordings = source.by_recipe
    rows = [key_steps(recording) for recording in recordings if not recording.is_error]
    write_list(out, rows, force=force)
    warnings = past_the_film(source.data) + source.warnings
    report: KeyStepLists = {
        "status": status_of(warnings),
        "recordings": len(rows),
        "with_errors": len(recordings) - len(rows),
        "keysteps": sum(len(row["keysteps"]) for row in rows),
        "file": str(out),
        "warnings": warnings,
    }
    return answer(report, f"{len(rows)} recordings in {out}", strict=strict)


@click.command()
@source_arguments
@LIST
@click.option(
    "--ask",
    type=click.Choice(["step", "categories"]),
    default="step",
    show_default=True,
    help="One question per step, whether it was performed; or seven, one for each category of error.",
)
@answers("export-prompts/1")
def prompts(paths: tuple[Path, ...], strict: bool, out: Path, force: bool, ask: str) -> Answer[StepQuestions]:
    """Write questions for a model that sees the video, with the right answer, Yes or No.

    One question per step, whether the person performed it: the answer is No if the step was done with an error or
    not done. With --ask categories seven per step: the step has an error if one of the answers is Yes. A question
    with start and end null is about the whole video, because the step was not done.

    \b
    Example:
      kitchensync export prompts our-kitchens --ask categories --out prompts.json
    """
    source = read_source(paths)
    recordings = source.by_recipe
    rows = [row for r in recordings for row in ask_about(r, categories=ask == "categories")]
    write_list(out, rows, force=force)
    warnings = past_the_film(source.data) + source.warnings
    tag_sets = [{error.tag for error in entry.errors} for r in recordings for entry in r.entries]
    other = sum(bool(tags) and tags.isdisjoint(TAG_OF_COLUMN.values()) for tags in tag_sets)
    if ask == "categories" and other:
        warnings.append(
            f"{other} steps have errors of none of the seven categories: all their answers are No"
        )
    report: StepQuestions = {
        "status": status_of(warnings),
        "recordings": len(recordings),
        "questions": len(rows),
        "yes": sum(row["answer"] == "Yes" for row in rows),
        "file": str(out),
        "warnings": warnings,
    }
    return answer(report, f"{len(rows):,} questions in {out}", strict=strict)

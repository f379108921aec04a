"""`kitchensync export steps|keysteps|prompts`: a row, a list or questions for each step."""

from __future__ import annotations

from pathlib import Path

import click

from kitchensync.dataset.commands.export_source import answer, given, source, write_list
from kitchensync.dataset.tables.csv_text import csv_text
from kitchensync.shell.answer import Answer, answers
from kitchensync.storage.options.output_options import output_file
from kitchensync.storage.options.outputs import write_output
from kitchensync.task_graphs.categories import TAG_OF_COLUMN

TABLE = output_file("out", "--out", required=True, metavar="FILE.csv", help="Table to write.")
LIST = output_file("out", "--out", required=True, metavar="FILE.json", help="List to write.")


@click.command()
@source
@TABLE
@answers("export-steps/1")
def steps(paths: tuple[Path, ...], strict: bool, out: Path, force: bool) -> Answer:
    """Write a row for each step: recording, entry, step_id, start, end, error, seven categories, node and text.

    Times are seconds of the film, -1.0 where the step was not done. `error` is 1 where a step has any error; the
    columns preparation, measurement, order, timing, technique, temperature and missing are 1 where it has that one,
    so that an error of another kind has `error` alone. `entry` is the step's place in its recording, from 0.
    `node` is the recipe's, `step_id` the lowest node of the recipe with that text; in the published form it is the
    published one.

    \b
    Example:
      kitchensync export steps our-kitchens --out steps.csv
    """
    from kitchensync.dataset.tables.step_rows import COLUMNS, past_the_film, step_rows

    found = given(paths)
    recordings = found.by_recipe
    rows = [row for one in recordings for row in step_rows(one)]
    write_output(out, csv_text(COLUMNS, rows).encode(), force=force)
    wrong = sum(row[COLUMNS.index("error")] == 1 for row in rows)
    said = {"recordings": len(recordings), "rows": len(rows), "with_errors": wrong, "file": str(out)}
    warnings = past_the_film(found.data) + found.warnings
    return answer(said, warnings, f"{len(rows):,} rows in {out}", strict=strict)


@click.command()
@source
@LIST
@answers("export-keysteps/1")
def keysteps(paths: tuple[Path, ...], strict: bool, out: Path, force: bool) -> Answer:
    """Write the steps of each recording without errors in the order in which they were done, with times.

    This is what procedure learning is trained with. Recordings with errors are left out and counted.

    \b
    Example:
      kitchensync export keysteps our-kitchens --out keysteps.json
    """
    from kitchensync.dataset.tables.step_rows import key_steps, past_the_film

    found = given(paths)
    recordings = found.by_recipe
    made = [key_steps(one) for one in recordings if not one.is_error]
    write_list(out, made, force=force)
    said = {"recordings": len(made), "with_errors": len(recordings) - len(made)}
    said["keysteps"] = sum(len(one["keysteps"]) for one in made)
    warnings = past_the_film(found.data) + found.warnings
    return answer({**said, "file": str(out)}, warnings, f"{len(made)} recordings in {out}", strict=strict)


@click.command()
@source
@LIST
@click.option(
    "--ask",
    type=click.Choice(["step", "categories"]),
    default="step",
    show_default=True,
    help="One question a step, whether it was performed; or seven, one for each category of error.",
)
@answers("export-prompts/1")
def prompts(paths: tuple[Path, ...], strict: bool, out: Path, force: bool, ask: str) -> Answer:
    """Write questions for a model that sees the video, with the right answer, Yes or No.

    One question a step, whether the person performed it: a step that was done with an error, or not done, has the
    answer No. With --ask categories seven a step: it has an error where one of the answers is Yes. A question with
    start and end null is about the whole film, for the step was not done.

    \b
    Example:
      kitchensync export prompts our-kitchens --ask categories --out prompts.json
    """
    from kitchensync.dataset.tables.step_rows import past_the_film
    from kitchensync.dataset.tables.step_rows import prompts as ask_about

    found = given(paths)
    recordings = found.by_recipe
    made = [row for one in recordings for row in ask_about(one, categories=ask == "categories")]
    write_list(out, made, force=force)
    yes = sum(one["answer"] == "Yes" for one in made)
    said = {"recordings": len(recordings), "questions": len(made), "yes": yes, "file": str(out)}
    warnings = past_the_film(found.data) + found.warnings
    wrong = [{error.tag for error in entry.errors} for one in recordings for entry in one.entries]
    other = sum(bool(tags) and tags.isdisjoint(TAG_OF_COLUMN.values()) for tags in wrong)
    if ask == "categories" and other:
        warnings.append(
            f"{other} steps have errors of none of the seven categories: all their answers are No"
        )
    return answer(said, warnings, f"{len(made):,} questions in {out}", strict=strict)

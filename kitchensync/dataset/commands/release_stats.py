"""`kitchensync release stats`: numbers of a data set, as JSON, tables and a page with plots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kitchensync.dataset.commands.export_source import given
from kitchensync.dataset.commands.options import GivenSource
from kitchensync.shell.answer import Answer, answers, show_table
from kitchensync.storage.options.output_options import OutputFolder, output_file
from kitchensync.storage.options.outputs import write_into, write_output
from kitchensync.task_graphs.formats.graph_files import read_task_graphs


@click.command()
@click.argument("folder", type=GivenSource())
@output_file("html", "--html", metavar="FILE", help="Page with plots; it loads nothing from elsewhere.")
@click.option("--csv", "tables", type=OutputFolder(), metavar="DIR", help="Folder of the tables.")
@answers("release-stats/1")
def stats(folder: Path, html: Path | None, force: bool, tables: Path | None) -> Answer:
    """Count the data set in FOLDER: recordings and hours by recipe, errors, segments, windows.

    FOLDER may also hold recordings: those that may be released are counted as they would be. Hours are
    lengths of films; a segment is a step that was done. Where two files of the data set disagree both counts are
    given.

    \b
    Example:
      kitchensync release stats our-kitchens --html statistics.html --csv statistics
    """
    from kitchensync.dataset.statistics.narrators import ReleasedNarration, released_narrations_of
    from kitchensync.dataset.statistics.statistics_numbers import statistics
    from kitchensync.dataset.statistics.statistics_page import as_page, as_tables

    found = given((folder,))
    if found.own:
        members = [one.member for one in found.own.values()]
        steps = {member.annotated.graph_stem: len(member.cooked.steps) for member in members}
        told = {name: one.member.cooked.narrated for name, one in found.own.items()}
        narrated = {
            name: [ReleasedNarration.model_validate(one) for one in rows]
            for name, rows in told.items()
            if rows
        }
    else:
        steps = {stem: len(graph.steps) for stem, graph in read_task_graphs(folder).items()}
        narrated = released_narrations_of(folder) if found.data.is_own else {}
    said = {**statistics(found.data, steps, narrated), "warnings": found.warnings}
    if html is not None:
        write_output(html, as_page(said, folder.name).encode(), force=force)
    if tables is not None:
        write_into(tables, {name: text.encode() for name, text in as_tables(said).items()}, force=force)
    return Answer(said, _show)


def _show(said: dict[str, Any]) -> None:
    columns = ["steps", "normal", "normal_hours", "error", "error_hours"]
    rows = {**said["table11"]["rows"], "all": said["table11"]["total"]}
    show_table(["recipe", *columns], [[name, *(row[key] for key in columns)] for name, row in rows.items()])
    click.echo()
    errors = said["figure19"]
    show_table(
        ["error", "uses", "entries", "recordings"],
        [
            [tag, uses, errors["entries"][tag], errors["recordings"][tag]]
            for tag, uses in errors["uses"].items()
        ],
    )
    for name, counts in said["stated"].items():
        click.echo(f"\n{name}: {', '.join(f'{word} {count}' for word, count in counts.items())}")
    done = said["table12"]
    click.echo(
        f"\n{done['segments']:,} segments in {done['videos']:,} films of {done['hours']} hours, "
        f"{done['segments_with_errors']:,} with errors"
    )
    if (told := said["narrations"])["narrations"]:
        agreed = "no moment was narrated by two"
        if told["pairs"]:
            shares = {word: told[f"same_{word}"] for word in ("verb", "noun")}
            same = [
                f"the same {word} in {share:.0%}, " for word, share in shares.items() if share is not None
            ]
            agreed = f"{told['pairs']:,} moments were narrated by two: {''.join(same)}"
            agreed += f"word error rate (of the longer text) {told['word_error_rate']:.2f}"
        click.echo(f"{told['narrations']:,} narrations by {told['speakers']} people; {agreed}")
    for about, found in said["sources"].items():
        if found["differ"]:
            click.echo(
                f"two sources differ on {about} in {len(found['differ'])} recordings; --json has both counts"
            )
    for line in said["warnings"]:
        click.echo(line)
    if unknown := said["films_of_unknown_length"]:
        click.echo(f"{len(unknown)} films have no known length and count 0 hours: {', '.join(unknown[:5])}")

"""`kitchensync release stats`: numbers of a data set, as JSON, tables and a page with plots."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kitchensync.dataset.commands.export_source import given
from kitchensync.dataset.commands.options import GivenSource
from kitchensync.dataset.statistics.narrators import ReleasedNarration, released_narrations_of
from kitchensync.dataset.statistics.statistics_numbers import statistics
from kitchensync.shell.answer import Answer, answers, show_table
from kitchensync.storage.options.output_options import OutputFolder, output_file
from kitchensync.storage.options.outputs import write_into, write_output
from kitchensync.task_graphs.formats.graph_files import read_task_graphs

if TYPE_CHECKING:
    from kitchensync.dataset.source.given_data import GivenData
    from kitchensync.dataset.statistics.narrators import ReleasedNarration


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
    from kitchensync.dataset.statistics.statistics_page import as_page, as_tables

    found = given((folder,))
    narrated = _narrated(folder, found)
    said = {**statistics(found.data, _steps(folder, found), narrated), "warnings": found.warnings}
    if html is not None:
        write_output(html, as_page(said, folder.name).encode(), force=force)
    if tables is not None:
        write_into(tables, {name: text.encode() for name, text in as_tables(said).items()}, force=force)
    return Answer(said, _show)


def _steps(folder: Path, found: GivenData) -> dict[str, int]:
    """Return how many steps each recipe has, by the name of its graph's file."""
    if found.own:
        members = (one.member for one in found.own.values())
        return {member.annotated.graph_stem: len(member.cooked.steps) for member in members}
    return {stem: len(graph.steps) for stem, graph in read_task_graphs(folder).items()}


def _narrated(folder: Path, found: GivenData) -> dict[str, list[ReleasedNarration]]:
    """Return what people said of the films, by recording."""
    if found.own:
        told = {name: one.member.cooked.narrated for name, one in found.own.items()}
        return {name: [ReleasedNarration(**one) for one in rows] for name, rows in told.items() if rows}
    return released_narrations_of(folder) if found.data.is_own else {}


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
    if told := said["narrations"]["narrations"]:
        click.echo(
            f"{told:,} narrations by {said['narrations']['speakers']} people; {_agreed(said['narrations'])}"
        )
    for about, found in said["sources"].items():
        if found["differ"]:
            click.echo(
                f"two sources differ on {about} in {len(found['differ'])} recordings; --json has both counts"
            )
    for line in said["warnings"]:
        click.echo(line)
    if unknown := said["films_of_unknown_length"]:
        click.echo(f"{len(unknown)} films have no known length and count 0 hours: {', '.join(unknown[:5])}")


def _agreed(narrations: dict[str, Any]) -> str:
    if not narrations["pairs"]:
        return "no moment was narrated by two"
    named = {word: narrations[f"same_{word}"] for word in ("verb", "noun")}
    same = [f"the same {word} in {share:.0%}" for word, share in named.items() if share is not None]
    return f"{narrations['pairs']:,} moments were narrated by two: " + ", ".join(
        [*same, f"word error rate (of the longer text) {narrations['word_error_rate']:.2f}"]
    )

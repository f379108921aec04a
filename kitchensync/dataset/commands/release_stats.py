"""`kitchensync release stats`: statistics of a data set, as JSON, tables and a page with plots."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from kitchensync.dataset.commands.export_source import read_source
from kitchensync.dataset.commands.options import SourcePath
from kitchensync.dataset.statistics.narrators import (
    NarratorAgreement,
    ReleasedNarration,
    released_narrations_of,
)
from kitchensync.dataset.statistics.statistics_numbers import DataSetStatistics, statistics
from kitchensync.dataset.statistics.statistics_page import as_page, as_tables
from kitchensync.shell.answer import Answer, answers, show_table
from kitchensync.storage.options.output_options import OutputFolder, output_file
from kitchensync.storage.options.outputs import write_into, write_output
from kitchensync.task_graphs.formats.graph_files import read_task_graphs


@click.command()
@click.argument("folder", type=SourcePath())
@output_file("html", "--html", metavar="FILE", help="Page with plots; it loads nothing from elsewhere.")
@click.option("--csv", "tables", type=OutputFolder(), metavar="DIR", help="Folder of the tables.")
@answers("release-stats/1")
def stats(folder: Path, html: Path | None, force: bool, tables: Path | None) -> Answer[DataSetStatistics]:
    """Count the data set in FOLDER: recordings and hours by recipe, errors, segments, windows.

    FOLDER may also hold recordings: those that may be released are counted. Hours are lengths of videos; a segment
    is a step that was done. If two files of the data set disagree, both counts are given.

    \b
    Example:
      kitchensync release stats our-kitchens --html statistics.html --csv statistics
    """
    source = read_source((folder,))
    if source.own:
        members = {name: ready.member for name, ready in source.own.items()}
        steps = {member.annotated.graph_stem: len(member.cooked.steps) for member in members.values()}
        narrated = {
            name: [ReleasedNarration.model_validate(row) for row in member.cooked.narrated]
            for name, member in members.items()
            if member.cooked.narrated
        }
    else:
        steps = {stem: len(graph.steps) for stem, graph in read_task_graphs(folder).items()}
        narrated = released_narrations_of(folder) if source.data.is_own else {}
    report = statistics(source.data, steps, narrated, source.warnings)
    if html is not None:
        write_output(html, as_page(report, folder.name).encode(), force=force)
    if tables is not None:
        write_into(tables, {name: text.encode() for name, text in as_tables(report).items()}, force=force)
    return Answer(report, _show)


def _show(report: DataSetStatistics) -> None:
    columns = ["steps", "normal", "normal_hours", "error", "error_hours"]
    rows: Mapping[str, Mapping[str, object]] = {
        **report["table11"]["rows"], "all": report["table11"]["total"],
    }  # fmt: skip
    show_table(["recipe", *columns], [[name, *(row[key] for key in columns)] for name, row in rows.items()])
    click.echo()
    errors = report["figure19"]
    show_table(
        ["error", "uses", "entries", "recordings"],
        [
            [tag, uses, errors["entries"][tag], errors["recordings"][tag]]
            for tag, uses in errors["uses"].items()
        ],
    )
    for name, counts in report["stated"].items():
        click.echo(f"\n{name}: {', '.join(f'{value} {count}' for value, count in counts.items())}")
    segments = report["table12"]
    click.echo(
        f"\n{segments['segments']:,} segments in {segments['videos']:,} videos of {segments['hours']} hours, "
        f"{segments['segments_with_errors']:,} with errors"
    )
    if (narrations := report["narrations"])["narrations"]:
        click.echo(
            f"{narrations['narrations']:,} narrations by {narrations['speakers']} people; {_agreement(narrations)}"
        )
    for about in ("person", "errors"):
        if differ := report["sources"][about]["differ"]:
            click.echo(f"two sources differ on {about} in {len(differ)} recordings; --json has both counts")
    for line in report["warnings"]:
        click.echo(line)
    if unknown := report["films_of_unknown_length"]:
        click.echo(f"{len(unknown)} videos have no known length and count 0 hours: {', '.join(unknown[:5])}")


def _agreement(narrations: NarratorAgreement) -> str:
    if not narrations["pairs"]:
        return "no moment was narrated by two people"
    shares = {"verb": narrations["same_verb"], "noun": narrations["same_noun"]}
    same = [f"the same {part} in {share:.0%}, " for part, share in shares.items() if share is not None]
    rate = f"word error rate (of the longer text) {narrations['word_error_rate']:.2f}"
    return f"{narrations['pairs']:,} moments were narrated by two people: {''.join(same)}{rate}"

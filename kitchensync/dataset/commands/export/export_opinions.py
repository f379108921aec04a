"""`kitchensync export opinions`: people's decisions about steps and ratings of questions, with their agreement."""

from __future__ import annotations

from pathlib import Path

import click

from kitchensync.dataset.commands.export_source import (
    ExportedList,
    answer,
    check_kept_in_recordings,
    read_source,
    source_arguments,
    status_of,
    write_list,
)
from kitchensync.dataset.examples.opinion_rows import Figures, opinion_rows
from kitchensync.shell.answer import Answer, answers
from kitchensync.storage.options.output_options import output_file


class OpinionRows(ExportedList):
    """The object `export-opinions/1`."""

    decisions: int
    ratings: int
    agreement: dict[str, Figures]
    "decisions, ratings: figures by question."


@click.command()
@source_arguments
@output_file("out", "--out", required=True, metavar="FILE.json", help="List to write.")
@answers("export-opinions/1")
def opinions(paths: tuple[Path, ...], strict: bool, out: Path, force: bool) -> Answer[OpinionRows]:
    """Write the opinions that the desk kept with own recordings: a row per decided step and per rated question.

    Steps: `kind` decision, `mistake` as annotated, `success` (yes or no) and `confidence` (1 to 5) of each person in
    turn, the majority, and the share of pairs of people who agree. Questions: `kind` rating, `relevance` and
    `informativeness` (1 to 5) of each person, their means, and the `measured` values. `example_id` is that of
    `export coherence`. No person is named.

    The answer has `agreement`: accuracy of the mean person and of the majority, shares, and means over recordings of
    Cohen's kappa and of Spearman's correlation between people, and with the measured values.

    \b
    Example:
      kitchensync export opinions data --out opinions.json
    """
    source = read_source(paths)
    check_kept_in_recordings(source, "opinions")
    by_kind, agreement, without = opinion_rows(source)
    warnings = source.warnings
    if without:
        warnings.append(f"no opinions are kept of {len(without)} recordings: {', '.join(without[:5])}")
    rows = [{"kind": kind.removesuffix("s")} | row for kind, of_kind in by_kind.items() for row in of_kind]
    write_list(out, rows, force=force)
    report: OpinionRows = {
        "status": status_of(warnings),
        "recordings": len(source.own),
        "decisions": len(by_kind["decisions"]),
        "ratings": len(by_kind["ratings"]),
        "agreement": agreement,
        "file": str(out),
        "warnings": warnings,
    }
    return answer(report, f"{len(rows):,} opinions in {out}", strict=strict)

"""`kitchensync export opinions`: what people decided of steps, and how they rated questions, with their agreement."""

from __future__ import annotations

from pathlib import Path

import click

from kitchensync.dataset.commands.export_source import (
    answer,
    check_kept_in_recordings,
    given,
    source,
    write_list,
)
from kitchensync.shell.answer import Answer, answers
from kitchensync.storage.options.output_options import output_file


@click.command()
@source
@output_file("out", "--out", required=True, metavar="FILE.json", help="List to write.")
@answers("export-opinions/1")
def opinions(paths: tuple[Path, ...], strict: bool, out: Path, force: bool) -> Answer:
    """Write the opinions that the desk kept with own recordings: one row a step decided, one a question rated.

    Steps: `kind` decision, `mistake` as annotated, `success` (yes or no) and `confidence` (1 to 5) of each person in
    turn, what the majority says, and the share of pairs of people who say the same. Questions: `kind` rating,
    `relevance` and `informativeness` (1 to 5) of each person, their means, and what was `measured`. `example_id` is
    that of `export coherence`. Nobody is named.

    The answer has `agreement`: accuracy of the mean person and of the majority, shares, and means over recordings of
    Cohen's kappa and of Spearman's correlation between people, and with what was measured.

    \b
    Example:
      kitchensync export opinions data --out opinions.json
    """
    from kitchensync.dataset.examples.opinion_rows import opinion_rows

    found = given(paths)
    check_kept_in_recordings(found, "opinions")
    rows, agreement, without = opinion_rows(found)
    warnings = found.warnings
    if without:
        warnings.append(f"no opinions are kept of {len(without)} recordings: {', '.join(without[:5])}")
    made = [{"kind": kind.removesuffix("s")} | row for kind, some in rows.items() for row in some]
    write_list(out, made, force=force)
    said = {"recordings": len(found.own), **{kind: len(some) for kind, some in rows.items()}}
    words = f"{len(made):,} opinions in {out}"
    return answer({**said, "agreement": agreement, "file": str(out)}, warnings, words, strict=strict)

"""`kitchensync export coherence`: examples for coherent mistake detection."""

from __future__ import annotations

from pathlib import Path

import click

from recipe_app.commands.export_source import answer, given, read_split, source, write_list
from storage.shell.answer import Answer, answers
from storage.shell.given_path import given_path
from storage.shell.output_options import output_file


@click.command()
@source
@output_file("out", "--out", required=True, metavar="FILE.json", help="List to write.")
@click.option(
    "--split",
    type=given_path(exists=True, dir_okay=False),
    help="File of parts, as `release split` writes it: count the examples by part.",
)
@answers("export-coherence/1")
def coherence(
    paths: tuple[Path, ...], numbering: Path | None, strict: bool, out: Path, force: bool, split: Path | None
) -> Answer:
    """Write steps as examples for coherent mistake detection: an instruction, a range of the film, mistake or not.

    By the rules of the published loader: only errors that a picture can show make a mistake; steps with none but
    others (order, timing, temperature, measurement), steps not done and those under 0.1 s are left out and counted.
    The range from..to is sampled ten times a second; `single_frame_range` are the samples of which one picture is
    chosen.

    \b
    Example:
      kitchensync export coherence our-kitchens --out examples.json
    """
    from recipe_app.releases.tables.coherence_examples import counted
    from recipe_app.releases.tables.film_ends import past_the_film

    found = given(paths, numbering)
    rows, said = counted(found.data.annotations.recordings, read_split(split, found) if split else None)
    write_list(out, rows, force=force)
    warnings = past_the_film(found.data) + found.warnings
    return answer(said | {"file": str(out)}, warnings, f"{len(rows):,} examples in {out}", strict=strict)

"""`kitchensync export windows`: clips of some steps in a row."""

from __future__ import annotations

from pathlib import Path

import click

from recipe_app.commands.export_source import answer, given, source, write_list
from storage.shell.answer import Answer, answers
from storage.shell.output_options import output_file


@click.command()
@source
@output_file("out", "--out", required=True, metavar="FILE.json", help="List to write.")
@click.option(
    "--sizes", default="2,3,4,5", show_default=True, help="How many steps a clip has, separated by commas."
)
@click.option(
    "--max-seconds", type=click.FloatRange(0, min_open=True), help="Leave out clips longer than this."
)
@answers("export-windows/1")
def windows(
    paths: tuple[Path, ...],
    numbering: Path | None,
    strict: bool,
    out: Path,
    force: bool,
    sizes: str,
    max_seconds: float | None,
) -> Answer:
    """Write clips of some steps in a row: id, recording, start, end, step_ids, texts, errors, objects.

    Times are seconds of the film. Steps are taken in order of their start; a clip ends with the last end among its
    steps, and the next one begins one step later. `objects` are the ingredients and tools that the texts name.

    \b
    Example:
      kitchensync export windows our-kitchens --sizes 2,3 --max-seconds 120 --out windows.json
    """
    from recipe_app.releases.tables.film_ends import past_the_film
    from recipe_app.releases.tables.step_windows import counted
    from recipe_app.releases.tables.step_windows import windows as clips

    wanted = _sizes(sizes)
    found = given(paths, numbering)
    recordings = found.data.annotations.recordings
    made = {size: [clip for one in recordings for clip in clips(one, size)] for size in wanted}
    limit = float("inf") if max_seconds is None else max_seconds
    kept = {size: [one for one in all_ if one["end"] - one["start"] <= limit] for size, all_ in made.items()}
    listed = [clip for clips_of_size in kept.values() for clip in clips_of_size]
    write_list(out, listed, force=force)
    said = {
        "recordings": len(recordings),
        "windows": {str(size): counted(found_clips) for size, found_clips in kept.items()},
        "left_out": sum(map(len, made.values())) - len(listed),
        "file": str(out),
    }
    warnings = past_the_film(found.data) + found.warnings
    return answer(said, warnings, f"{len(listed):,} clips in {out}", strict=strict)


def _sizes(text: str) -> list[int]:
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and 1 <= int(word) <= 1000 for word in words):
        raise click.BadParameter(f"{text!r}: not numbers of steps, such as 2,3", param_hint="--sizes")
    return list(dict.fromkeys(map(int, words)))

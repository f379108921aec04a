"""`kitchensync export coherence`: examples for coherent mistake detection."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from recipe_app.commands.export_source import answer, given, read_split, source, write_list
from storage.shell.answer import Answer, answers
from storage.shell.given_path import given_path
from storage.shell.output_options import output_file
from storage.shell.outputs import write_into
from storage.shell.progress import Bar

if TYPE_CHECKING:
    from recipe_app.releases.given_data import GivenData
    from recipe_app.releases.tables.coherence_examples import Example


@click.command()
@source
@output_file("out", "--out", required=True, metavar="FILE.json", help="List to write.")
@click.option(
    "--split",
    type=given_path(exists=True, dir_okay=False),
    help="File of parts, as `release split` writes it: count the examples by part.",
)
@click.option(
    "--frames",
    is_flag=True,
    help="Write pictures into a folder beside FILE.json, <name>.frames: of each half second of the single frames' "
    "range the sharpest one.",
)
@answers("export-coherence/1")
def coherence(
    paths: tuple[Path, ...],
    numbering: Path | None,
    strict: bool,
    out: Path,
    force: bool,
    split: Path | None,
    frames: bool,
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
    warnings = past_the_film(found.data) + found.warnings
    if frames:
        warnings += _write_frames(found, rows, out.with_suffix(".frames"), force=force)
        said |= {"frames": sum(len(row["frames"]) for row in rows)}
    write_list(out, rows, force=force)
    return answer(said | {"file": str(out)}, warnings, f"{len(rows):,} examples in {out}", strict=strict)


def _write_frames(found: GivenData, rows: list[Example], folder: Path, *, force: bool) -> list[str]:
    """Write the pictures and name them in the rows; say which films are not here. Raises CannotWrite."""
    from recipe_app.releases.coherence_frames import sharpest_frames
    from recipe_app.releases.given_films import open_film

    absent = []
    with Bar(unit="films") as bar:
        recordings = found.data.annotations.recordings
        for done, one in enumerate(recordings):
            bar.show(done, len(recordings), one.recording_id)
            ours = [row for row in rows if row["example_id"].rpartition("_")[0] == one.recording_id]
            for row in ours:
                row |= {"frames": [], "frame_times": []}
            with open_film(found, one.recording_id) as film:
                if film is None:
                    absent.append(one.recording_id)
                    continue
                for example, name, at_s, content in sharpest_frames(film, ours):
                    write_into(folder, {name: content}, force=force)
                    example["frames"].append(f"{folder.name}/{name}")
                    example["frame_times"].append(round(at_s, 4))
    return [f"{len(absent)} films are not here: {', '.join(absent[:5])}"] if absent else []

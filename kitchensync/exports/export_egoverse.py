"""`kitchensync export egoverse`: the steps of recordings as episodes of EgoVerse."""

from __future__ import annotations

from pathlib import Path

import click

from kitchensync.exports.exported_span import span_options
from kitchensync.storage.shell.answer import Answer, answers
from kitchensync.storage.shell.given_path import GivenRecording
from kitchensync.storage.shell.output_options import OutputFolder, output


@click.command()
@click.argument("paths", metavar="PATH...", type=GivenRecording(usable=True), nargs=-1, required=True)
@output("out", "--out", kind=OutputFolder(), required=True, help="Folder of the episodes.")
@span_options
@answers("export-egoverse/1")
def egoverse(
    paths: tuple[Path, ...], out: Path, force: bool, start: float | None, end: float | None, step: int | None
) -> Answer:
    """Write each step of recordings as episodes of EgoVerse, in its Zarr v3 form.

    `<UTC of its start>.zarr` with pictures, pose and lens of the front camera, both hands and gaze in the world, one
    row a picture, the step's text, and a preview beside it. Where pictures or world break off, as in a privacy pause,
    another episode begins; what comes before the first hand and after the last one is cut off. What does not fit is
    left out and named. Given again, it writes what is not there yet. A folder stands for the recordings in it. Needs
    the extra `data`.

    \b
    Example:
      kitchensync export egoverse data/take-1 --out episodes
    """
    from kitchensync.exports.egoverse_episodes import write_egoverse
    from kitchensync.exports.exported_span import choice_of, each_recording, left_out_lines
    from kitchensync.storage.shell.progress import Bar

    choice = choice_of(start, end, step)
    with Bar("export egoverse", unit="frames") as bar:
        made, without = each_recording(
            paths, lambda rec: write_egoverse(rec, out, choice, bar.show, force=force)
        )
    found = [episode for one in made for episode in one["episodes"]]
    words = f"{len(found)} episodes, {sum(episode['frames'] for episode in found):,} frames, in {out}"
    return Answer(
        {"recordings": made, "left_out": without}, lambda _: click.echo(words), left_out_lines(made, without)
    )

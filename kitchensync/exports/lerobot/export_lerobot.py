"""`kitchensync export lerobot`: recordings as the episodes of one data set of LeRobot v3.0."""

from __future__ import annotations

from pathlib import Path

import click

from kitchensync.exports.exported_span import choice_of, choice_options, recordings_of
from kitchensync.shell.answer import Answer, answers
from kitchensync.shell.progress import Bar
from kitchensync.storage.options.given_path import GivenRecording
from kitchensync.storage.options.output_options import OutputFolder, output


@click.command()
@click.argument(
    "recordings", metavar="RECORDING...", type=GivenRecording(usable=True), nargs=-1, required=True
)
@output(
    "out", "--out", kind=OutputFolder(), required=True, help="Folder of the data set, written as a whole."
)
@click.option("--fps", type=click.IntRange(1, 240), default=30, show_default=True, help="Frames a second.")
@click.option(
    "--width",
    type=click.IntRange(16, 8192),
    default=640,
    show_default=True,
    help="Pixels across: pictures are made smaller, never larger.",
)
@choice_options
@answers("export-lerobot/1")
def lerobot(
    recordings: tuple[Path, ...], out: Path, force: bool, fps: int, width: int,
    start: float | None, end: float | None, step: int | None, streams: str | None,
) -> Answer:  # fmt: skip
    """Write recordings as one data set of LeRobot v3.0, an episode each.

    Frames lie on an exact grid of time. Each has the last picture of the front camera and of each film, with when
    it was taken and whether it is of that instant; head, palms and gaze as state, the next state as action; the
    steps being done as task, and what is done wrong in them. Frames begin where all cameras have pictures, unless
    --from is given. A folder stands for the recordings in it; of several those that may not be given, and cameras
    that not all have, are left out and named. Needs the extra `data`.

    \b
    Example:
      kitchensync export lerobot data/take-1 data/take-2 --out cooking
    """
    from kitchensync.exports.lerobot.lerobot_data_set import write_lerobot

    paths = recordings_of(recordings)
    with Bar("export lerobot", unit="frames") as bar:
        said = write_lerobot(
            paths, out, choice_of(start, end, step, streams), fps, width, bar.show, force=force
        )
    words = f"{len(said['episodes'])} episodes, {said['frames']:,} frames, in {out}"
    trouble = [f"{name} left out: {why}" for name, why in said["left_out"].items()]
    return Answer(said, lambda _: click.echo(words), trouble)

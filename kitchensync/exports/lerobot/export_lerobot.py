"""`kitchensync export lerobot`: recordings as the episodes of one data set of LeRobot v3.0."""

from __future__ import annotations

from pathlib import Path

import click

from kitchensync.exports.exported_span import choice_of, choice_options, recordings_of
from kitchensync.exports.lerobot.lerobot_data_set import LeRobotContents, write_lerobot
from kitchensync.shell.answer import Answer, answers
from kitchensync.shell.progress import Bar
from kitchensync.storage.options.given_path import GivenRecording
from kitchensync.storage.options.output_options import OutputFolder, output


@click.command()
@click.argument(
    "recordings", metavar="RECORDING...", type=GivenRecording(usable=True), nargs=-1, required=True
)
@output("out", "--out", kind=OutputFolder(), required=True, help="Folder of the data set, which must be new.")
@click.option("--fps", type=click.IntRange(1, 240), default=30, show_default=True, help="Frames a second.")
@click.option(
    "--width",
    type=click.IntRange(16, 8192),
    default=640,
    show_default=True,
    help="Width in pixels: frames are scaled down, never up.",
)
@choice_options
@answers("export-lerobot/1")
def lerobot(
    recordings: tuple[Path, ...], out: Path, force: bool, fps: int, width: int,
    start: float | None, end: float | None, step: int | None, streams: str | None,
) -> Answer[LeRobotContents]:  # fmt: skip
    """Write recordings as one data set of LeRobot v3.0, one episode per recording.

    Frames are on an exact time grid. Each has the last image of the front camera and of each video, with its capture
    time and whether it is valid for that instant. State is head, palms and gaze; action is the next state; task is
    the steps in progress, with their errors. Episodes begin when all cameras have images, unless --from is given. A
    folder means all recordings in it. Of several recordings, those without consent and cameras that some recordings
    lack are left out and listed. Needs the extra `data`.

    \b
    Example:
      kitchensync export lerobot data/take-1 data/take-2 --out cooking
    """
    paths = recordings_of(recordings)
    with Bar("export lerobot", unit="frames") as bar:
        answer = write_lerobot(
            paths, out, choice_of(start, end, step, streams), fps, width, bar.show, force=force
        )
    summary = f"{len(answer['episodes'])} episodes, {answer['frames']:,} frames, in {out}"
    left_out = [f"{name} left out: {why}" for name, why in answer["left_out"].items()]
    return Answer(answer, lambda _: click.echo(summary), left_out)

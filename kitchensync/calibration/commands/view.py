"""The command `kitchensync view`."""

from __future__ import annotations

from pathlib import Path

import click

from kitchensync.calibration.space.recording_view import view_recording
from kitchensync.calibration.space.view_parts import ViewOptions
from kitchensync.shell.progress import Bar
from kitchensync.storage.options.given_path import GivenRecording
from kitchensync.storage.options.output_options import output_file


@click.command()
@click.argument("recording", type=GivenRecording(usable=True))
@output_file(
    "save",
    "--save",
    metavar="FILE.rrd",
    help="Write FILE.rrd instead of opening the viewer, on a computer without a screen.",
)
@click.option("--from", "from_s", type=click.FloatRange(min=0), default=0.0, help="First session second.")
@click.option("--to", "to_s", type=click.FloatRange(min=0), help="Last session second.")
@click.option(
    "--pictures-per-second",
    type=click.FloatRange(min=0.1),
    default=5.0,
    show_default=True,
    help="Frames of each camera shown per second; a depth cloud is shown at every fifth.",
)
def view(
    recording: Path,
    save: Path | None,
    force: bool,
    from_s: float,
    to_s: float | None,
    pictures_per_second: float,
) -> None:
    """Open a recording in Rerun: video, depth, poses, hands, gaze, sensors and events on one timeline.

    Session time counts from the first packet of the headset. Cameras are shown after `sync`, and with their poses
    after lens and mount are calibrated. Needs the extra `view`.

    \b
    Example:
      kitchensync view data/take-1
      kitchensync view data/take-1 --save take-1.rrd
    """
    options = ViewOptions(pictures_per_second, from_s, float("inf") if to_s is None else to_s)
    with Bar(unit="s sent") as bar:
        left_out = view_recording(
            recording, save, options, lambda name, seconds: bar.show(seconds, words=name), force=force
        )
    for why in left_out:
        click.echo(f"left out: {why}", err=True)
    if save is not None:
        click.echo(f"{save}: {save.stat().st_size / 1e6:.1f} MB; open it with `rerun {save}`")

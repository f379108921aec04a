"""The command `side-by-side`."""

from __future__ import annotations

from pathlib import Path

import click

from kitchensync.shell.progress import Bar
from kitchensync.storage.options.given_path import GivenRecording
from kitchensync.storage.options.output_options import output_file
from kitchensync.sync.side_by_side.side_by_side import film_side_by_side


@click.command("side-by-side")
@click.argument("recording", type=GivenRecording(usable=True))
@output_file("out", "--out", required=True, help="The MP4 to write.")
@click.option(
    "--streams", metavar="A,B,...", default="", help="Streams of the index.  [default: pv and GoPros]"
)
@click.option(
    "--from",
    "from_s",
    type=click.FloatRange(min=0.0),
    default=0.0,
    help="Seconds since the first frame of the index.",
)
@click.option(
    "--to", "to_s", type=click.FloatRange(min=0.0), help="Seconds since the first frame.  [default: end]"
)
def side_by_side(
    recording: Path, out: Path, force: bool, streams: str, from_s: float, to_s: float | None
) -> None:
    """Write a video of all cameras side by side with their times burnt in, to check an alignment by eye.

    The instants are the frames of the index that `sync` wrote. Below each picture: its number, how many ms it was
    taken after (+) or before (-) the instant, and for a GoPro the file and its media time.

    \b
    Example:
      kitchensync side-by-side data/take-1 --out check.mp4 --from 60 --to 90
      kitchensync side-by-side data/take-1 --out all.mp4 --streams pv,gopro,depth_ahat,vlc_leftfront
    """
    wanted = tuple(name.strip() for name in streams.split(",") if name.strip())
    with Bar(out.name, unit="frames") as bar:
        frames = film_side_by_side(
            recording, out, streams=wanted, from_s=from_s, to_s=to_s, progress=bar.show, force=force
        )
    click.echo(f"{out}  {frames} frames")

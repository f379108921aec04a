"""`kitchensync export mcap`: recordings as files for Foxglove and the tools around MCAP."""

from __future__ import annotations

from pathlib import Path

import click

from kitchensync.exports.exported_span import (
    choice_of,
    choice_options,
    each_recording,
    export_status,
    left_out_lines,
)
from kitchensync.shell.answer import Answer, answers, size_words
from kitchensync.shell.progress import Bar
from kitchensync.storage.options.given_path import GivenRecording
from kitchensync.storage.options.output_options import OutputFolder, output


@click.command()
@click.argument("paths", metavar="PATH...", type=GivenRecording(usable=True), nargs=-1, required=True)
@output("out", "--out", kind=OutputFolder(), required=True, help="Folder of the files.")
@click.option(
    "--depth-per-second",
    type=click.FloatRange(min=0.01, max=1000),
    help="At most so many depth pictures a second: all of them are 20 MB a second  [default: all].",
)
@click.option(
    "--depth-as-stored",
    is_flag=True,
    help="Hand over depth that is stored as video as that video: quick and small, for programs that know how it is "
    "packed (the metadata of its topic say it).",
)
@choice_options
@answers("export-mcap/1")
def mcap(
    paths: tuple[Path, ...], out: Path, force: bool, depth_per_second: float | None, depth_as_stored: bool,
    start: float | None, end: float | None, step: int | None, streams: str | None,
) -> Answer:  # fmt: skip
    """Write each recording as one MCAP file, `<recording>.mcap`, with Foxglove's schemas.

    A topic `/<device>/<stream>` has one message a stored packet. Video as it was stored, from a key frame on (of a
    headset the one before --from, of a film the one after); depth in millimetres, sound, motion, poses of heads and
    cameras as transforms, lens, hands, gaze, declared records, steps, errors and events as log. Log times are
    CLOCK_MONOTONIC of the capture computer, ns; the metadata `kitchensync` says how they become UTC and session
    time. What cannot be handed over is left out and named (WARN). Given again, it writes what is not there yet. A
    folder stands for the recordings in it. Needs the extra `data`.

    \b
    Example:
      kitchensync export mcap data/take-1 --out mcap --step 3
    """
    from kitchensync.exports.mcap_file import write_mcap
    from kitchensync.exports.mcap_pieces import DepthChoice

    if depth_as_stored and depth_per_second:
        raise click.UsageError(
            "--depth-per-second decodes depth, --depth-as-stored does not; give one of them"
        )
    choice, depth = choice_of(start, end, step, streams), DepthChoice(depth_per_second, depth_as_stored)
    with Bar("export mcap", unit="s") as bar:
        made, without = each_recording(
            paths,
            lambda rec: write_mcap(rec, out / f"{rec.id}.mcap", choice, depth, bar.show, force=force),
        )
    count, size = (sum(sum(one["messages"].values()) for one in made), sum(one["bytes"] for one in made))
    words = f"{count:,} messages, {size_words(size)}, in {out}"
    status = export_status(made, without)
    said = {"status": status, "recordings": made, "left_out": without}
    return Answer(said, lambda _: click.echo(f"{status}  {words}"), left_out_lines(made, without))

"""`kitchensync export mcap`: a recording as one file for Foxglove and the tools around MCAP."""

from __future__ import annotations

from pathlib import Path

import click

from kitchensync.exports.exported_span import span_options
from kitchensync.storage.shell.answer import Answer, answers, size_words
from kitchensync.storage.shell.given_path import GivenRecording
from kitchensync.storage.shell.output_options import output_file


@click.command()
@click.argument("recording", type=GivenRecording(usable=True))
@output_file("out", "--out", required=True, metavar="FILE.mcap", help="The file.")
@click.option(
    "--depth-per-second",
    type=click.FloatRange(min=0.01),
    help="How many depth pictures a second [default: those that stand alone, at most 2: that is quick].",
)
@span_options
@answers("export-mcap/1")
def mcap(
    recording: Path, out: Path, force: bool, depth_per_second: float | None,
    start: float | None, end: float | None, step: int | None,
) -> Answer:  # fmt: skip
    """Write a recording as one MCAP file with Foxglove's schemas.

    Video as it was stored, from a key frame on (of a headset the one before --from, of a film the one after); depth
    in millimetres, sound, poses of heads and cameras as transforms, lens, hands, gaze, motion, steps with errors and
    events as log. Times are UTC to the nanosecond; the metadata `kitchensync` says how they become session time. What
    cannot be handed over is left out and named.
    Needs the extra `export`.

    \b
    Example:
      kitchensync export mcap data/take-1 --out take-1.mcap --step 3
    """
    from kitchensync.exports.exported_span import opened_to_give, span_of
    from kitchensync.exports.mcap_file import write_mcap
    from kitchensync.storage.shell.progress import Bar

    with opened_to_give(recording) as rec, Bar("export mcap", unit="s") as bar:
        span = span_of(rec, start, end, step)
        said = write_mcap(rec, out, span, depth_per_second, bar.show, force=force)
    words = f"{sum(said['messages'].values()):,} messages, {size_words(said['bytes'])}, in {out}"
    trouble = [f"{name} left out: {why}" for name, why in said["left_out"].items()]
    return Answer(said, lambda _: click.echo(words), trouble)

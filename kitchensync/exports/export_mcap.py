"""`kitchensync export mcap`: recordings as files for Foxglove and the tools around MCAP."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

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

if TYPE_CHECKING:
    from kitchensync.exports.mcap_file import McapExport


class McapExports(TypedDict):
    """The object `export-mcap/1`."""

    status: str
    recordings: list[McapExport]
    left_out: dict[str, str]
    "Recording: why it is not exported."


@click.command()
@click.argument("paths", metavar="PATH...", type=GivenRecording(usable=True), nargs=-1, required=True)
@output("out", "--out", kind=OutputFolder(), required=True, help="Folder of the files.")
@click.option(
    "--depth-as-stored",
    is_flag=True,
    help="Export depth that is stored as video without decoding it: fast and small, for programs that know its "
    "packing (the metadata of its topic has it).",
)
@choice_options
@answers("export-mcap/1")
def mcap(
    paths: tuple[Path, ...], out: Path, force: bool, depth_as_stored: bool,
    start: float | None, end: float | None, step: int | None, streams: str | None,
) -> Answer[McapExports]:  # fmt: skip
    """Write each recording as one MCAP file, `<recording>.mcap`, with Foxglove's schemas.

    A topic `/<device>/<stream>` has one message for each stored packet. Video is not decoded and begins at a key
    frame (of a headset the last one before --from, of a camera the first one after it). Depth is in millimetres.
    Poses of heads and cameras are transforms; steps, errors and events are log messages. Sound, motion, lens, hands,
    gaze and declared records are exported too. Log times are CLOCK_MONOTONIC of the capture computer, ns; the
    metadata `kitchensync` converts them to UTC and session time. Data that cannot be exported is left out and listed
    (WARN). A repeated export writes only what is missing. A folder means all recordings in it. Needs the extra
    `data`.

    \b
    Example:
      kitchensync export mcap data/take-1 --out mcap --step 3
    """
    from kitchensync.exports.mcap_file import write_mcap

    choice = choice_of(start, end, step, streams)
    with Bar("export mcap", unit="s") as bar:
        made, without = each_recording(
            paths,
            lambda rec: write_mcap(
                rec, out / f"{rec.id}.mcap", choice, depth_as_stored, bar.show, force=force
            ),
        )
    count, size = sum(sum(file["messages"].values()) for file in made), sum(file["bytes"] for file in made)
    status = export_status(made, without)
    summary = f"{status}  {count:,} messages, {size_words(size)}, in {out}"
    answer: McapExports = {"status": status, "recordings": made, "left_out": without}
    return Answer(answer, lambda _: click.echo(summary), left_out_lines(made, without))

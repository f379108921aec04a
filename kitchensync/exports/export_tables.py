"""`kitchensync export tables`: motion, poses, hands, gaze, steps and events of a recording as tables."""

from __future__ import annotations

from pathlib import Path

import click

from kitchensync.exports.exported_span import span_options
from kitchensync.storage.shell.answer import Answer, answers
from kitchensync.storage.shell.given_path import GivenRecording
from kitchensync.storage.shell.output_options import OutputFolder, output


@click.command()
@click.argument("recording", type=GivenRecording(usable=True))
@output("out", "--out", kind=OutputFolder(), required=True, help="Folder of the tables.")
@click.option(
    "--form",
    type=click.Choice(("parquet", "csv")),
    default="parquet",
    show_default=True,
    help="Form of the files.",
)
@span_options
@answers("export-tables/1")
def tables(
    recording: Path,
    out: Path,
    force: bool,
    form: str,
    start: float | None,
    end: float | None,
    step: int | None,
) -> Answer:
    """Write motion, poses, hands, gaze, steps and events of a recording as Parquet or CSV, one file a stream.

    Every row has session_s, host_ns (CLOCK_MONOTONIC of the capture computer) and utc; units are in the names of the
    columns; what was not seen is empty. Pictures, depth and sound are not in tables: `<camera>_video` says when each
    picture was taken. about.json lists the files, and what was left out with the reason. Needs the extra `data`.

    \b
    Example:
      kitchensync export tables data/take-1 --out tables --form csv
    """
    from kitchensync.exports.exported_span import opened_to_give, span_of
    from kitchensync.exports.recording_tables import write_tables
    from kitchensync.storage.shell.progress import Bar

    with opened_to_give(recording) as rec, Bar("export tables", unit="tables") as bar:
        span = span_of(rec, start, end, step)
        about = write_tables(rec, out, span, form, bar.show, force=force)
    rows = sum(one["rows"] for one in about["tables"].values())
    trouble = [f"{name} left out: {why}" for name, why in about["left_out"].items()]
    return Answer(
        about, lambda _: click.echo(f"{len(about['tables'])} tables, {rows:,} rows, in {out}"), trouble
    )

"""`kitchensync export tables`: motion, poses, hands, gaze, steps, errors and events of recordings as tables."""

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
from kitchensync.shell.answer import Answer, answers
from kitchensync.shell.progress import Bar
from kitchensync.storage.options.given_path import GivenRecording
from kitchensync.storage.options.output_options import OutputFolder, output

if TYPE_CHECKING:
    from kitchensync.exports.recording_tables import TablesOfRecording


class TableExports(TypedDict):
    """The object `export-tables/1`."""

    status: str
    recordings: list[TablesOfRecording]
    left_out: dict[str, str]
    "Recording: why it is not exported."


@click.command()
@click.argument("paths", metavar="PATH...", type=GivenRecording(usable=True), nargs=-1, required=True)
@output("out", "--out", kind=OutputFolder(), required=True, help="Folder of the tables.")
@click.option("--csv", "with_csv", is_flag=True, help="Write each table as CSV too.")
@choice_options
@answers("export-tables/1")
def tables(
    paths: tuple[Path, ...], out: Path, force: bool, with_csv: bool,
    start: float | None, end: float | None, step: int | None, streams: str | None,
) -> Answer[TableExports]:  # fmt: skip
    """Write motion, poses, hands, gaze, declared records, steps, errors and events as Parquet, one file per stream.

    The files are `<recording>/<stream>.parquet`. Every row has session_s, host_ns (CLOCK_MONOTONIC of the capture
    computer), utc and utc_bound_ns (the error bound of utc on that computer's clock). Column names have the units;
    values that were not tracked are empty. Frames, depth and sound are not exported: `<camera>/video` has the capture
    time of each frame. about.json lists the files, and what was left out with the reason: WARN if a table could have
    it. A repeated export writes only what is missing. A folder means all recordings in it. Needs the extra `data`.

    \b
    Example:
      kitchensync export tables data/take-1 --out tables --csv
    """
    from kitchensync.exports.recording_tables import write_tables

    choice, forms = choice_of(start, end, step, streams), ("parquet", "csv") if with_csv else ("parquet",)
    with Bar("export tables", unit="tables") as bar:
        made, without = each_recording(
            paths, lambda rec: write_tables(rec, out / rec.id, choice, forms, bar.show, force=force)
        )
    written = [table for export in made for table in export["tables"].values()]
    summary = f"{len(written)} tables, {sum(table['rows'] for table in written):,} rows, in {out}"
    status = export_status(made, without)
    answer: TableExports = {"status": status, "recordings": made, "left_out": without}
    return Answer(answer, lambda _: click.echo(f"{status}  {summary}"), left_out_lines(made, without))

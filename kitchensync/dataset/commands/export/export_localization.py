"""`kitchensync export localization`: step times in the format of the published step localization code."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import click

from kitchensync.dataset.commands.export_source import (
    FPS,
    Assessed,
    answer,
    read_source,
    source_arguments,
    status_of,
)
from kitchensync.dataset.source.source_data import SourceData
from kitchensync.dataset.tables.localization import (
    SPLIT_FILE,
    Localization,
    Split,
    faults_of,
    not_done,
    parse_split,
)
from kitchensync.dataset.tables.step_rows import past_the_film
from kitchensync.shell.answer import Answer, answers
from kitchensync.storage.options.given_path import given_path
from kitchensync.storage.options.output_options import OutputFolder, output
from kitchensync.storage.options.outputs import write_into
from kitchensync.task_graphs.formats.graph_files import read_text


class StepTimes(Assessed):
    """The object `export-localization/1`."""

    files: list[str]
    not_done: dict[str, int]
    "File: its steps that were not done."
    dropped: bool
    "Whether these steps are left out."


@click.command()
@source_arguments
@click.option(
    "--splits",
    required=True,
    type=given_path(exists=True, file_okay=False),
    help="Folder of <kind>_data_split_<type>.json, as `release split` writes them.",
)
@output("out", "--out", kind=OutputFolder(), required=True, help="Folder of <type>/<kind>.json.")
@FPS
@click.option(
    "--drop-missing",
    "--corrected",
    "drop_missing",
    is_flag=True,
    help="Leave out steps that were not done; mark recordings with errors.",
)
@answers("export-localization/1")
def localization(
    paths: tuple[Path, ...], strict: bool, splits: Path, out: Path, force: bool, fps: str, drop_missing: bool
) -> Answer[StepTimes]:
    """Write when each step was done: one file per split, in the form of the published localization code.

    As published, a step that was not done is at -1 s and no recording is marked as having errors; this gives a
    warning. --drop-missing corrects both.

    \b
    Example:
      kitchensync export localization captaincook4d --splits captaincook4d/data_splits --out localization
    """
    source = read_source(paths)
    parts, warnings = _read_splits(splits, source)
    form = Localization(source.data, fps, drop_missing)
    files = {f"{name}.json": form.file(split) for name, split in parts.items()}
    write_into(out, {name: text.encode() for name, text in files.items()}, force=force)
    warnings += [] if drop_missing else faults_of(source.data, parts)
    warnings += past_the_film(source.data) + source.other_rates(Fraction(fps)) + source.warnings
    report: StepTimes = {
        "status": status_of(warnings),
        "files": sorted(files),
        "not_done": {f"{name}.json": not_done(source.data, split) for name, split in parts.items()},
        "dropped": drop_missing,
        "warnings": warnings,
    }
    return answer(report, f"{len(files)} files in {out}", strict=strict)


def _read_splits(folder: Path, source: SourceData) -> tuple[dict[str, Split], list[str]]:
    """Return `<type>/<kind>` -> split, and a warning for each skipped file. Raises BadGraph, click.UsageError."""
    ids = [recording.recording_id for recording in source.data.annotations.recordings]
    splits: dict[str, Split] = {}
    warnings = []
    for path in sorted(folder.iterdir()):
        if (match := SPLIT_FILE.fullmatch(path.name)) is None:
            continue
        split = parse_split(read_text(path), path.name, ids)
        if split is None:
            warnings.append(f"skipped: {path.name} divides steps, not recordings")
        elif not any(split.values()):
            warnings.append(f"skipped: {path.name} holds no recording")
        else:
            splits[f"{match[2]}/{match[1]}"] = split
    if not splits:
        raise click.UsageError(f"{folder} has no <kind>_data_split_<type>.json that holds a recording")
    return splits, warnings

"""Arguments, input and answer that the commands of `kitchensync export` share."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

import click

from kitchensync.dataset.commands.options import SourcePath
from kitchensync.shell.answer import Answer
from kitchensync.storage.names import is_recording, recordings_in
from kitchensync.storage.options.given_path import reason_given
from kitchensync.storage.options.outputs import written

if TYPE_CHECKING:
    from kitchensync.dataset.source.source_data import SourceData
    from kitchensync.dataset.tables.localization import Split


class Assessed(TypedDict):
    """The keys of every answer with warnings."""

    status: str
    "PASS; WARN with warnings; FAIL."
    warnings: list[str]


class ExportedList(Assessed):
    """The keys of every export that writes one list or table."""

    recordings: int
    file: str
    "The list or table."


_Row = TypeVar("_Row")
_Report = TypeVar("_Report", bound=Assessed)
CORRECTED = click.option(
    "--corrected",
    is_flag=True,
    help="Write it right where the published form has a known fault [default: WARN].",
)
STRICT = click.option("--strict", is_flag=True, help="Let WARN give exit code 1 too.")
FPS = click.option(
    "--fps",
    default="29.97",
    show_default=True,
    callback=lambda _ctx, _param, text: rate(text),
    help="Frames a second of the videos, as a fraction: 25, 29.97, 30000/1001.",
)


def rate(text: str) -> str:
    """Check a frame rate and return its text. Raises click.BadParameter."""
    try:
        if Fraction(text) > 0:
            return text.strip()
    except (ValueError, ZeroDivisionError):
        pass
    raise click.BadParameter(f"{text!r}: not a frame rate such as 25 or 30000/1001")


REASON = "kitchensync.without_consent"
WITHOUT_CONSENT = click.option(
    "--without-consent",
    metavar="REASON",
    expose_value=False,
    callback=lambda context, *given: context.meta.update({REASON: reason_given(context, *given)}),
    help="Also read recordings without consent; the reason is kept in their manifests.",
)


def source_arguments(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add PATHS, `--strict`, and `--without-consent`, which only `read_source` reads."""
    paths = click.argument("paths", nargs=-1, required=True, type=SourcePath())
    return paths(WITHOUT_CONSENT(STRICT(command)))


def read_source(paths: tuple[Path, ...]) -> SourceData:
    """Read the data set or the recordings at PATHS. Raises BadGraph, NotReleasable."""
    from kitchensync.dataset.source.source_data import data_of_folder, data_of_recordings
    from kitchensync.storage.consent import Purpose, note_override

    if published := published_among(paths):
        return data_of_folder(published)
    recordings = list(dict.fromkeys(recording for path in paths for recording in recordings_in(path)))
    reason = click.get_current_context().meta.get(REASON, "")
    data = data_of_recordings(recordings, without_consent=reason)
    for ready in data.own.values():
        note_override(ready.path, Purpose.RELEASE_RAW, reason)
    return data


def published_among(paths: tuple[Path, ...]) -> Path | None:
    """Return the folder in the published form; None if PATHS are recordings. Raises click.UsageError for both."""
    from kitchensync.dataset.source.data_set_folder import is_published

    published = next(filter(is_published, paths), None)
    if published and len(paths) > 1:
        raise click.UsageError(f"{published} is in the published form; give it alone")
    if published and any(map(is_recording, published.glob("*"))):
        raise click.UsageError(
            f"{published} is in the published form and holds recordings too; separate them"
        )
    return published


def check_kept_in_recordings(source: SourceData, what: str) -> None:
    """Raise UsageError for a published data set: people's answers stay with the recordings."""
    if not source.own:
        raise click.UsageError(f"{what} are kept in recordings, and a published data set has none")


def read_split(path: Path, source: SourceData) -> Split:
    """Read a split of recordings. Raises BadGraph, click.UsageError."""
    from kitchensync.dataset.tables.localization import parse_split
    from kitchensync.task_graphs.formats.graph_files import read_text

    ids = [recording.recording_id for recording in source.data.annotations.recordings]
    split = parse_split(read_text(path), path.name, ids)
    if split is None:
        raise click.UsageError(f"{path.name} divides steps, not recordings")
    return split


def in_parts(
    rows: Sequence[_Row], part_of: Mapping[str, str], recording_of: Callable[[_Row], str], warnings: list[str]
) -> list[_Row]:
    """Return the rows of recordings that are in a part; warn how many rows are left out."""
    kept = [row for row in rows if recording_of(row) in part_of]
    if len(kept) < len(rows):
        warnings.append(f"{len(rows) - len(kept)} belong to recordings in no part and are left out")
    return kept


def missing_films(absent: Sequence[str]) -> list[str]:
    """Return a warning line about recordings whose videos are missing, if any."""
    return [f"{len(absent)} videos are missing: {', '.join(absent[:5])}"] if absent else []


def write_list(out: Path, rows: Sequence[Mapping[str, object]], *, force: bool) -> None:
    """Write a list as JSON, one element per line. Raises OutputRefused."""
    with written(out, force=force) as part, part.open("w", encoding="utf-8", newline="\n") as file:
        for number, row in enumerate(rows):
            file.write((",\n" if number else "[\n") + json.dumps(row, ensure_ascii=False))
        file.write("\n]\n" if rows else "[]\n")


def status_of(warnings: Sequence[str]) -> str:
    """Return PASS, or WARN if there are warnings."""
    return "WARN" if warnings else "PASS"


def answer(report: _Report, summary: str, *, strict: bool) -> Answer[_Report]:
    """Build an answer with a line for each warning; with `strict` they make it fail."""
    warnings = report["warnings"]
    return Answer(
        report,
        lambda _: click.echo(f"{report['status']}: {summary}"),
        [f"WARN: {line}" for line in warnings],
        failed=strict and bool(warnings),
    )

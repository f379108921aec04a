"""What the commands of `kitchensync export` share: what they are given, and how they answer."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kitchensync.dataset.commands.options import GivenSource
from kitchensync.shell.answer import Answer
from kitchensync.storage.names import is_recording, recordings_in
from kitchensync.storage.options.given_path import reason_given
from kitchensync.storage.options.outputs import written

if TYPE_CHECKING:
    from kitchensync.dataset.source.given_data import GivenData
    from kitchensync.dataset.tables.localization import Split

_Row = TypeVar("_Row")
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
    help="Pictures a second of the films, as a fraction: 25, 29.97, 30000/1001.",
)


def rate(text: str) -> str:
    """Check a number of pictures a second and return it as it was given. Raises click.BadParameter."""
    try:
        if Fraction(text) > 0:
            return text.strip()
    except (ValueError, ZeroDivisionError):
        pass
    raise click.BadParameter(f"{text!r}: no number of pictures a second, such as 25 or 30000/1001")


REASON = "kitchensync.without_consent"
WITHOUT_CONSENT = click.option(
    "--without-consent",
    metavar="REASON",
    expose_value=False,
    callback=lambda context, *given: context.meta.update({REASON: reason_given(context, *given)}),
    help="Read recordings too to which nobody agreed; the reason is kept in their manifests.",
)


def source(command: Callable[..., Any]) -> Callable[..., Any]:
    """Declare PATHS, `--strict`, and `--without-consent`, which only `given` needs to know."""
    paths = click.argument("paths", nargs=-1, required=True, type=GivenSource())
    options = (STRICT, WITHOUT_CONSENT, paths)
    return functools.reduce(lambda made, option: option(made), options, command)


def given(paths: tuple[Path, ...]) -> GivenData:
    """Return the data set that PATHS are. Raises BadGraph, NotReleasable."""
    from kitchensync.dataset.source.given_data import given_folder, given_recordings
    from kitchensync.storage.consent import Purpose, note_override

    if published := published_among(paths):
        return given_folder(published)
    found = list(dict.fromkeys(recording for path in paths for recording in recordings_in(path)))
    reason = click.get_current_context().meta.get(REASON, "")
    data = given_recordings(found, without_consent=reason)
    for one in data.own.values():
        note_override(one.path, Purpose.RELEASE_RAW, reason)
    return data


def published_among(paths: tuple[Path, ...]) -> Path | None:
    """Return the folder in the published form; None where PATHS are recordings. Raises click.UsageError for both."""
    from kitchensync.dataset.source.data_set_folder import is_published

    published = next(filter(is_published, paths), None)
    if published and len(paths) > 1:
        raise click.UsageError(f"{published} is in the published form and is given by itself")
    if published and any(map(is_recording, published.glob("*"))):
        raise click.UsageError(f"{published} is in the published form and holds recordings too; part the two")
    return published


def check_kept_in_recordings(found: GivenData, what: str) -> None:
    """Raise UsageError for a published data set: people's answers stay with the recordings."""
    if not found.own:
        raise click.UsageError(f"{what} are kept in recordings, and a published data set has none")


def read_split(path: Path, found: GivenData) -> Split:
    """Read a file of parts that divides recordings. Raises BadGraph, click.UsageError."""
    from kitchensync.dataset.tables.localization import parse_split
    from kitchensync.task_graphs.formats.graph_files import read_text

    known = [one.recording_id for one in found.data.annotations.recordings]
    split = parse_split(read_text(path), path.name, known)
    if split is None:
        raise click.UsageError(f"{path.name} divides steps, not recordings")
    return split


def in_parts(
    rows: Sequence[_Row], part_of: Mapping[str, str], recording_of: Callable[[_Row], str], warnings: list[str]
) -> list[_Row]:
    """Return the rows of recordings that are in a part, and warn of how many others there are."""
    inside = [row for row in rows if recording_of(row) in part_of]
    if len(inside) < len(rows):
        warnings.append(f"{len(rows) - len(inside)} are of recordings in no part and are left out")
    return inside


def not_here(absent: Sequence[str]) -> list[str]:
    """Return a line about recordings whose films are not in the folder."""
    return [f"{len(absent)} films are not here: {', '.join(absent[:5])}"] if absent else []


def write_list(out: Path, made: Sequence[Mapping[str, object]], *, force: bool) -> None:
    """Write a list as JSON, one element a line. Raises OutputRefused."""
    with written(out, force=force) as part, part.open("w", encoding="utf-8", newline="\n") as file:
        for number, one in enumerate(made):
            file.write((",\n" if number else "[\n") + json.dumps(one, ensure_ascii=False))
        file.write("\n]\n" if made else "[]\n")


def answer(said: Mapping[str, object], warnings: list[str], words: str, *, strict: bool) -> Answer:
    """Answer with a status: WARN and a line for each thing that is not as it should be."""
    status = "WARN" if warnings else "PASS"
    lines = [f"WARN: {line}" for line in warnings]
    return Answer(
        {"status": status, **said, "warnings": warnings},
        lambda _: click.echo(f"{status}: {words}"),
        lines,
        failed=strict and bool(warnings),
    )

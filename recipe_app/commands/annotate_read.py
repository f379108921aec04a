"""`kitchensync annotate read`: what a file of an annotation tool says of each recording."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from recipe_app.commands.export_source import STRICT, answer, rate
from storage.shell.answer import Answer, answers
from storage.shell.given_path import given_path


def _exact(_: click.Context, __: click.Parameter, text: str | None) -> Fraction | None:
    """Return a rate as an exact fraction. Raises BadParameter."""
    from recipe_app.annotation.forms.frame_times import MOST_FPS

    if text is None:
        return None
    if not 1 <= (fps := Fraction(rate(text))) <= MOST_FPS:
        raise click.BadParameter(f"{text!r}: films have 1 to {MOST_FPS} frames a second", param_hint="--fps")
    return fps


FPS = click.option(
    "--fps",
    callback=_exact,
    help="Frames a second of the films, as a fraction: 25, 30000/1001 [default: what the tasks say].",
)
CONFIG = click.option(
    "--config",
    type=given_path(exists=True, dir_okay=False),
    help="The project's labelling configuration (XML): labels that it lacks do not count.",
)


@click.command()
@click.argument("file", type=given_path(exists=True, dir_okay=False))
@CONFIG
@FPS
@STRICT
@answers("annotate-read/1")
def read(file: Path, config: Path | None, fps: Fraction | None, strict: bool) -> Answer:
    """Read a Label Studio export in its form JSON: when each person saw each step, in seconds of the film.

    Files of ELAN (.eaf, with its .times.json where that is beside it) and of VIA 3 (.csv) are read too.

    Frames count from 1 and both ends belong to a region. What cannot count is named: labels that are unknown or
    missing, regions past the end, steps that a person did not mark. Cancelled work never counts. Narrations, in
    seconds with text, come back as `audio`. No recording, server or network is needed.

    \b
    Example:
      kitchensync annotate read tasks.json --config config.xml --fps 30000/1001
    """
    from recipe_app.annotation.read_file import read_file

    found = read_file(file, config, fps)
    warnings = [
        f"{name}: {one['word']}: {one['where']}"
        for name, said in found["recordings"].items()
        for one in said["findings"]
    ]
    other = found.pop("other_rates")
    warnings += [f"{name}: region at another rate: its task does not say {found['fps']}" for name in other]
    return answer(found, warnings, _words(found), strict=strict)


def _words(found: dict[str, Any]) -> str:
    lines = [f"{len(found['recordings'])} recordings, {found['fps'] or 'no'} frames a second"]
    for name, said in found["recordings"].items():
        people = ", ".join(f"{who}: {len(spans)} steps" for who, spans in said["annotators"].items())
        lines.append(f"  {name}: {people or 'nobody marked steps'}; {len(said['audio'])} narrations")
    return "\n".join(lines)

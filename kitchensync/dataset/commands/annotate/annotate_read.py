"""`kitchensync annotate read`: what a file of an annotation tool says of each recording."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import click

from kitchensync.dataset.annotation.forms.agreement_of_people import SpanErrors, Spans, agreement
from kitchensync.dataset.annotation.forms.frame_times import MOST_FPS
from kitchensync.dataset.annotation.read_file import read_file
from kitchensync.dataset.commands.export_source import STRICT, answer, rate
from kitchensync.shell.answer import Answer, answers, show_table
from kitchensync.storage.options.given_path import given_path
from kitchensync.task_graphs.errors import RecipeError


def _exact(_: click.Context, __: click.Parameter, text: str | None) -> Fraction | None:
    """Return a rate as an exact fraction. Raises click.BadParameter."""
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
    """Read a Label Studio JSON export: when each annotator saw each step, in seconds of the video.

    Files of ELAN (.eaf, with its .times.json where that is beside it) are read too.

    Frames count from 1 and both ends belong to a region. What cannot count is named: labels that are unknown or
    missing, regions past the end, steps that a person did not mark. Cancelled work never counts. Narrations, in
    seconds with text, come back as `audio`. No recording, server or network is needed.

    \b
    Example:
      kitchensync annotate read tasks.json --config config.xml --fps 30000/1001
    """
    found = read_file(file, config, fps)
    warnings = [
        f"{name}: {one['word']}: {one['where']}"
        for name, said in found["recordings"].items()
        for one in said["findings"]
    ]
    rate_says = f"region at another rate: its task does not say {found['fps']}"
    warnings += [f"{name}: {rate_says}" for name in found["other_rates"]]
    lines = [f"{len(found['recordings'])} recordings, {found['fps'] or 'no'} frames a second"]
    for name, said in found["recordings"].items():
        people = ", ".join(f"{who}: {len(spans)} steps" for who, spans in said["annotators"].items())
        lines.append(f"  {name}: {people or 'nobody marked steps'}; {len(said['audio'])} narrations")
    answered = {"fps": found["fps"], "recordings": found["recordings"]}
    return answer(answered, warnings, "\n".join(lines), strict=strict)


@click.command()
@click.argument("files", nargs=-1, required=True, type=given_path(exists=True, dir_okay=False))
@CONFIG
@FPS
@answers("annotate-agree/1")
def agree(files: tuple[Path, ...], config: Path | None, fps: Fraction | None) -> Answer:
    """Compare each pair of annotators in each video: one export with several people, or several exports.

    Boundaries are compared where both have one span of a step: median, 95th percentile and largest difference in
    seconds. IoU: time in both spans divided by time in either, mean over all steps. Kappa is Cohen's, of the steps at
    each moment of the film.

    \b
    Example:
      kitchensync annotate agree tasks.json --config config.xml --fps 30000/1001
    """
    return Answer({"pairs": pairs_of(files, config, fps)}, _show)


def _show(said: Any) -> None:
    figures = ("boundary_error_median_s", "boundary_error_p95_s", "boundary_error_max_s", "mean_iou", "kappa")
    columns = ("recording", "first", "second", "median s", "95 % s", "largest s", "IoU", "kappa")
    rows = [
        [
            *(pair["recording"], pair["first"], pair["second"]),
            *("-" if pair[figure] is None else f"{pair[figure]:.3f}" for figure in figures),
        ]
        for pair in said["pairs"]
    ]
    show_table(columns, rows, left=3)


class AgreementOfPair(SpanErrors):
    """How well two people agree about a recording."""

    recording: str
    first: str
    second: str


def pairs_of(files: Sequence[Path], config: Path | None, fps: Fraction | None) -> list[AgreementOfPair]:
    """Return the agreement of every two people by recording. Raises BadGraph, RecipeError for none.

    A person is named by file and number where there are several files.
    """
    found: dict[str, list[tuple[str, Spans, float | None]]] = {}
    for path in files:
        for recording, said in read_file(path, config, fps)["recordings"].items():
            for person, spans in said["annotators"].items():
                name = person if len(files) == 1 else f"{path.name}:{person}"
                found.setdefault(recording, []).append((name, spans, said["duration_s"]))
    pairs: list[AgreementOfPair] = [
        {"recording": recording, "first": one[0], "second": other[0], **agreement(one[1], other[1], one[2])}
        for recording, people in found.items()
        for one, other in combinations(people, 2)
    ]
    if not pairs:
        names = ", ".join(path.name for path in files)
        raise RecipeError(f"{names}: no film was marked by two people; give the exports of both")
    return pairs

"""`kitchensync annotate read|agree`: read the export of an annotation tool, and compare annotators."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import TypedDict

import click

from kitchensync.dataset.annotation.forms.agreement_of_people import SpanErrors, Spans, agreement
from kitchensync.dataset.annotation.forms.frame_times import MOST_FPS
from kitchensync.dataset.annotation.read_file import MarkedRecording, read_file
from kitchensync.dataset.commands.export_source import STRICT, Assessed, answer, rate, status_of
from kitchensync.shell.answer import Answer, answers, show_table
from kitchensync.storage.options.given_path import given_path
from kitchensync.task_graphs.errors import RecipeError


class ReadAnnotations(Assessed):
    """The object `annotate-read/1`."""

    fps: str | None
    "Frames a second of the videos, as a fraction."
    recordings: dict[str, MarkedRecording]


class AgreementOfPair(SpanErrors):
    """How well two people agree about a recording."""

    recording: str
    first: str
    second: str


class Agreements(TypedDict):
    """The object `annotate-agree/1`."""

    pairs: list[AgreementOfPair]


def _exact(_: click.Context, __: click.Parameter, text: str | None) -> Fraction | None:
    """Return a rate as an exact fraction. Raises click.BadParameter."""
    if text is None:
        return None
    if not 1 <= (fps := Fraction(rate(text))) <= MOST_FPS:
        raise click.BadParameter(f"{text!r}: videos have 1 to {MOST_FPS} frames a second", param_hint="--fps")
    return fps


FPS = click.option(
    "--fps",
    callback=_exact,
    help="Frames a second of the videos, as a fraction: 25, 30000/1001 [default: from the tasks].",
)
CONFIG = click.option(
    "--config",
    type=given_path(exists=True, dir_okay=False),
    help="The project's labelling configuration (XML): other labels do not count.",
)


@click.command()
@click.argument("file", type=given_path(exists=True, dir_okay=False))
@CONFIG
@FPS
@STRICT
@answers("annotate-read/1")
def read(file: Path, config: Path | None, fps: Fraction | None, strict: bool) -> Answer[ReadAnnotations]:
    """Read a Label Studio JSON export: when each annotator marked each step, in seconds of the video.

    ELAN files (.eaf, with .times.json beside it if there is one) are read too.

    Frames count from 1 and both ends belong to a region. Findings are reported: unknown or missing labels, regions
    past the end, steps that a person did not mark. Cancelled work never counts. Narrations, in seconds with text,
    are returned as `audio`. No recording, server or network is needed.

    \b
    Example:
      kitchensync annotate read tasks.json --config config.xml --fps 30000/1001
    """
    content = read_file(file, config, fps)
    warnings = [
        f"{name}: {finding['word']}: {finding['where']}"
        for name, marked in content["recordings"].items()
        for finding in marked["findings"]
    ]
    warnings += [
        f"{name}: region at another rate: its task does not have {content['fps']}"
        for name in content["other_rates"]
    ]
    lines = [f"{len(content['recordings'])} recordings, {content['fps'] or 'no'} frames a second"]
    for name, marked in content["recordings"].items():
        people = ", ".join(f"{who}: {len(spans)} steps" for who, spans in marked["annotators"].items())
        lines.append(f"  {name}: {people or 'no marked steps'}; {len(marked['audio'])} narrations")
    report: ReadAnnotations = {
        "status": status_of(warnings),
        "fps": content["fps"],
        "recordings": content["recordings"],
        "warnings": warnings,
    }
    return answer(report, "\n".join(lines), strict=strict)


@click.command()
@click.argument("files", nargs=-1, required=True, type=given_path(exists=True, dir_okay=False))
@CONFIG
@FPS
@answers("annotate-agree/1")
def agree(files: tuple[Path, ...], config: Path | None, fps: Fraction | None) -> Answer[Agreements]:
    """Compare each pair of annotators in each video: one export with several people, or several exports.

    Boundaries are compared if both have one span of a step: median, 95th percentile and largest difference in
    seconds. IoU: time in both spans divided by time in either, mean over all steps. Kappa is Cohen's kappa of the
    steps at each moment of the video.

    \b
    Example:
      kitchensync annotate agree tasks.json --config config.xml --fps 30000/1001
    """
    report: Agreements = {"pairs": pairs_of(files, config, fps)}
    return Answer(report, _show)


def _show(report: Agreements) -> None:
    columns = ("recording", "first", "second", "median s", "95 % s", "largest s", "IoU", "kappa")
    rows = []
    for pair in report["pairs"]:
        errors_s = (
            pair["boundary_error_median_s"], pair["boundary_error_p95_s"], pair["boundary_error_max_s"],
        )  # fmt: skip
        figures = (
            "-" if figure is None else f"{figure:.3f}"
            for figure in (*errors_s, pair["mean_iou"], pair["kappa"])
        )
        rows.append([pair["recording"], pair["first"], pair["second"], *figures])
    show_table(columns, rows, left=3)


def pairs_of(files: Sequence[Path], config: Path | None, fps: Fraction | None) -> list[AgreementOfPair]:
    """Return the agreement of every two people in each recording. Raises BadGraph, and RecipeError without a pair.

    With several files, the name of a person has the file name in front.
    """
    annotators: dict[str, list[tuple[str, Spans, float | None]]] = {}
    for path in files:
        for recording, marked in read_file(path, config, fps)["recordings"].items():
            for person, spans in marked["annotators"].items():
                name = person if len(files) == 1 else f"{path.name}:{person}"
                annotators.setdefault(recording, []).append((name, spans, marked["duration_s"]))
    pairs: list[AgreementOfPair] = [
        {"recording": recording, "first": first, "second": second, **agreement(spans, others, duration_s)}
        for recording, people in annotators.items()
        for (first, spans, duration_s), (second, others, _) in combinations(people, 2)
    ]
    if not pairs:
        names = ", ".join(path.name for path in files)
        raise RecipeError(f"{names}: no video was marked by two people; give the exports of both")
    return pairs

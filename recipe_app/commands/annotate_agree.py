"""`kitchensync annotate agree`: how well every two people agree about when steps were."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from recipe_app.commands.annotate_read import CONFIG, FPS
from storage.shell.answer import Answer, answers
from storage.shell.given_path import given_path
from storage.shell.table import show_table


@click.command()
@click.argument("files", nargs=-1, required=True, type=given_path(exists=True, dir_okay=False))
@CONFIG
@FPS
@answers("annotate-agree/1")
def agree(files: tuple[Path, ...], config: Path | None, fps: Fraction | None) -> Answer:
    """Compare what every two people marked in each film: one export with several people, or several exports.

    Boundaries are compared where both have one span of a step: median, 95th percentile and largest difference in
    seconds. IoU: time in both spans divided by time in either, mean over all steps. Kappa is Cohen's, of the steps at
    each moment of the film.

    \b
    Example:
      kitchensync annotate agree tasks.json --config config.xml --fps 30000/1001
    """
    from recipe_app.annotation.compare_people import pairs_of

    return Answer({"pairs": pairs_of(files, config, fps)}, _show)


def _show(said: Any) -> None:
    figures = ("boundary_error_median_s", "boundary_error_p95_s", "boundary_error_max_s", "mean_iou", "kappa")
    columns = ("recording", "first", "second", "median s", "95 % s", "largest s", "IoU", "kappa")
    names = [[pair["recording"], pair["first"], pair["second"]] for pair in said["pairs"]]
    rows = [
        [*name, *(_cell(pair[f]) for f in figures)] for name, pair in zip(names, said["pairs"], strict=True)
    ]
    show_table(columns, rows, left=3)


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"

"""`kitchensync export`: data sets and recordings in formats that other programs read.

A format is a line of `FORMS` and a command like `steps` in `export_steps.py`; a pure function in
`kitchensync/dataset/tables` makes its rows.
"""

from __future__ import annotations

from typing import Any

import click

from kitchensync.shell.lazy_group import LazyGroup, Table

_HERE = "dataset.commands.export.export"
FORMS: Table = {
    "localization": (
        f"{_HERE}_localization:localization",
        "When each step was done, by film and part (JSON).",
    ),
    "seconds": (f"{_HERE}_seconds:seconds", "One row a second of each step, with or without error (CSV)."),
    "steps": (f"{_HERE}_steps:steps", "One row a step: its segment and its errors (CSV)."),
    "frames": (f"{_HERE}_frames:frames", "Each picture, normal or not, and those to train on (CSV)."),
    "features": (f"{_HERE}_features:features", "A vector for each second of each film (NPZ)."),
    "windows": (f"{_HERE}_windows:windows", "Clips of two to five steps in a row (JSON)."),
    "prompts": (f"{_HERE}_steps:prompts", "Questions about each step, with the right answers (JSON)."),
    "coherence": (f"{_HERE}_coherence:coherence", "Examples for coherent mistake detection (JSON)."),
    "opinions": (
        f"{_HERE}_opinions:opinions",
        "What people decided of steps and how they rated questions (JSON).",
    ),
    "promqa": (
        f"{_HERE}_promqa:promqa",
        "What comes next, what was missed, what went wrong: examples (JSON).",
    ),
    "assembly": (f"{_HERE}_assembly:assembly", "Questions about toys that are put together (JSON)."),
    "tables": (
        "exports.export_tables:tables",
        "Motion, poses, hands, gaze, steps, events of a recording (Parquet, CSV).",
    ),
    "mcap": (
        "exports.export_mcap:mcap",
        "All of a recording in one file for Foxglove and other tools (MCAP).",
    ),
    "lerobot": (
        "exports.lerobot.export_lerobot:lerobot",
        "Recordings as episodes on an exact grid of time, with films (LeRobot v3.0).",
    ),
    "keysteps": (
        f"{_HERE}_steps:keysteps",
        "Steps of recordings without errors, in order, with times (JSON).",
    ),
}
"""Format -> (command, one line of help)."""


def _list(context: click.Context, _: click.Parameter, is_listing: bool) -> None:
    if is_listing:
        for name, (_command, text) in FORMS.items():
            click.echo(f"{name:<14}{text}")
        context.exit()


@click.group(cls=LazyGroup, sections={"Commands": FORMS})
@click.option(
    "--list", is_flag=True, is_eager=True, expose_value=False, callback=_list, help="List the forms."
)
def export(**_: Any) -> None:
    """Export data sets and recordings in the formats that models and other programs read.

    The input is a folder in the published form of CaptainCook4D, or recordings. Recordings are read as by `release`;
    those without consent to release_raw are left out with a warning.

    \b
    Example:
      kitchensync export seconds our-kitchens --out seconds.csv
    """

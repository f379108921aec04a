"""Options of commands that process many recordings in parallel, by local processes or a scheduler's workers."""

from __future__ import annotations

import click

JOBS = click.option(
    "--jobs",
    type=click.IntRange(min=1),
    help="How many processes of this computer work.  [default: one a core]",
)
SCHEDULER = click.option(
    "--scheduler", metavar="URL", help="Dask scheduler to work on, such as tcp://10.0.0.5:8786."
)

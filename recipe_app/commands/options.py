"""What several commands share: the file they are given, the seed, and where the app keeps its memory."""

from __future__ import annotations

from pathlib import Path

import click

from storage.shell.given_path import given_path
from storage.shell.output_options import OutputFolder

FILE = click.argument("file", type=given_path(exists=True))
SEED = click.option(
    "--seed", type=int, default=0, show_default=True, help="The same seed gives the same answer."
)
DATA = click.option(
    "--data",
    type=OutputFolder(),
    default=Path("recordings"),
    show_default=True,
    help="As for `app`.",
)
DATABASE = click.option("--database", metavar="URL", help="As for `app`: postgresql://...")

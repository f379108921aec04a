"""Where the app keeps its memory, for commands beside `app`."""

from __future__ import annotations

from pathlib import Path

import click

from kitchensync.storage.shell.output_options import OutputFolder

DATA = click.option(
    "--data",
    type=OutputFolder(),
    default=Path("recordings"),
    show_default=True,
    help="As for `app`.",
)
DATABASE = click.option("--database", metavar="URL", help="As for `app`: postgresql://...")

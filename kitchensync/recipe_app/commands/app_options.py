"""Where the app keeps its memory, for commands beside `app`."""

from __future__ import annotations

import click

from kitchensync.storage.options.data_folder import data_option

DATABASE_VARIABLE = "KITCHENSYNC_DATABASE"
DATA = data_option("As for `app`.")
DATABASE = click.option(
    "--database",
    metavar="URL",
    envvar=DATABASE_VARIABLE,
    help=f"As for `app`: postgresql://...  [default: {DATABASE_VARIABLE}]",
)

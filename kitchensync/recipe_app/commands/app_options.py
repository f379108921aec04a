"""Where the app keeps its memory, for commands beside `app`."""

from __future__ import annotations

import click

from kitchensync.storage.options.data_folder import data_option

DATA = data_option("As for `app`.")
DATABASE = click.option("--database", metavar="URL", help="As for `app`: postgresql://...")

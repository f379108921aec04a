"""Options for the location of the app's data, for commands other than `app`."""

from __future__ import annotations

import click

from kitchensync.storage.options.data_folder import data_option

DATA = data_option("As for `app`.")
DATABASE = click.option("--database", metavar="URL", help="As for `app`: postgresql://...")

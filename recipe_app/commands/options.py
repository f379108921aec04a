"""What the commands around task graphs share: the file they are given, and the seed."""

from __future__ import annotations

import click

from storage.shell.given_path import given_path

FILE = click.argument("file", type=given_path(exists=True))
SEED = click.option(
    "--seed", type=int, default=0, show_default=True, help="The same seed gives the same answer."
)

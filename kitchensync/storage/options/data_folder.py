"""The default folder of recordings, one rule for all commands."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from kitchensync.storage.lab import stated_data
from kitchensync.storage.options.output_options import OutputFolder

VARIABLE = "KITCHENSYNC_DATA"
USUAL = Path("data")
RULE = f"{VARIABLE}, else lab.toml, else {USUAL}"


def default_data() -> Path:
    """Return the folder that KITCHENSYNC_DATA names, else lab.toml, else `data`. Raises BadLabFile."""
    if named := os.environ.get(VARIABLE):
        return Path(named)
    return stated if (stated := stated_data()) is not None else USUAL


def data_option(words: str, *, kind: click.ParamType | None = None) -> Callable[[Callable[..., Any]], Any]:
    """Declare --data with the usual folder as its default; `words` is its help."""
    given = kind or OutputFolder()
    return click.option("--data", type=given, default=default_data, show_default=RULE, help=words)

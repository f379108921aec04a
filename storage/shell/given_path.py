"""Paths as commands take them: absolute from the start, for they go on to processes that run elsewhere."""

from __future__ import annotations

from pathlib import Path

import click


def given_path(*, exists: bool = False, file_okay: bool = True, dir_okay: bool = True) -> click.Path:
    """Make the type of a path argument or option; commands get an absolute `Path` whose links are followed."""
    return click.Path(
        exists=exists, file_okay=file_okay, dir_okay=dir_okay, path_type=Path, resolve_path=True
    )

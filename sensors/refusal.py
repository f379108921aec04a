"""How a command says that it cannot: an error that tells the one shell what was said already."""

from __future__ import annotations

import os

import click


class Answered(click.ClickException):
    """A refusal whose JSON object was printed by the command: only the line on stderr is left to be said."""


def words_of(error: Exception) -> str:
    """Say an error in one line; what the computer says without its numbers, with the file and what to do."""
    if not isinstance(error, OSError):
        return " ".join(str(error).split())
    where = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
    return f"{where}{(error.strerror or str(error)).lower()}; see to the disk, then run it again"

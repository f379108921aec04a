"""How a command says that it cannot: an error that tells the one shell what was said already."""

from __future__ import annotations

import click


class Answered(click.ClickException):
    """A refusal whose JSON object was printed by the command: only the line on stderr is left to be said."""

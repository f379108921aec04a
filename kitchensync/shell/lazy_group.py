"""A group of commands that are imported only when called, so that help is instant."""

from __future__ import annotations

import importlib
from difflib import get_close_matches
from typing import Any

import click

Table = dict[str, tuple[str, str]]
"""command -> (`folder.module:function` in `kitchensync`, one line of help)."""


class LazyGroup(click.Group):
    """A click group over a table of commands, without importing their modules."""

    def __init__(self, *arguments: Any, sections: dict[str, Table], **options: Any) -> None:
        """Take the commands by section of the help, and the arguments of every click group."""
        super().__init__(*arguments, **options)
        self.sections = sections
        self.table = {name: line for table in sections.values() for name, line in table.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a command and return the command."""
        if cmd_name not in self.table:
            return None
        module, _, attribute = self.table[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(f"kitchensync.{module}"), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of some arguments, with a suggestion for a mistyped name."""
        if args and args[0] not in self.table and (close := get_close_matches(args[0], self.table, n=1)):
            ctx.fail(f"No such command {args[0]!r}. Did you mean {close[0]!r}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table, without importing them."""
        widest = max(map(len, self.table))
        for title, table in self.sections.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(widest), text) for name, (_, text) in table.items()])

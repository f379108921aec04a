"""Every command without commands of its own, by its name as it is typed: `graph orders`."""

from __future__ import annotations

from collections.abc import Iterator

import click

from kitchensync.cli import main


def commands_below(group: click.Group, before: str = "") -> Iterator[tuple[str, click.Command]]:
    """Yield the commands of a group with their names."""
    context = click.Context(group)
    for word in group.list_commands(context):
        command = group.get_command(context, word)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands_below(command, f"{before}{word} ")
        else:
            yield f"{before}{word}", command


COMMANDS = dict(commands_below(main))

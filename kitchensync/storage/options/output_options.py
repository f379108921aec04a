"""Declare output paths of commands with `--force`."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from kitchensync.storage.copies.derived import may_write
from kitchensync.storage.options.outputs import check_output, check_place

Command = Callable[..., Any]
DefaultName = Callable[[dict[str, Any]], str]


class OutputPath(click.Path):
    """An output path of a command, resolved; a place inside a recording is refused while options are parsed."""

    def __init__(self, *, folder: bool = False, exists: bool = False) -> None:
        super().__init__(exists=exists, file_okay=not folder, path_type=Path, resolve_path=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path. Raises OutputRefused."""
        place = check_place(Path(os.fsdecode(super().convert(value, param, ctx))))
        if ctx is not None and any(option.name == "force" for option in ctx.command.params):
            may_write(place)
        return place


class OutputFolder(OutputPath):
    """An output folder of a command; it may exist, and must with `exists`."""

    def __init__(self, *, exists: bool = False) -> None:
        super().__init__(folder=True, exists=exists)


def output_file(
    name: str, *flags: str, default_name: DefaultName | None = None, **options: Any
) -> Callable[[Command], Command]:
    """Declare the output file of a command, and `--force`; an existing file is refused before any work is done.

    Without `flags` it is an argument. `default_name` computes the name from the other parameters. The command gets
    the path and `force`.
    """

    def declare(command: Command) -> Command:
        @functools.wraps(command)
        def checked(*arguments: Any, **values: Any) -> Any:
            if values[name] is None and default_name is not None:
                values[name] = Path(default_name(values)).resolve()
            if values[name] is not None:
                check_output(values[name], force=values["force"])
            return command(*arguments, **values)

        return output(name, *flags, **options)(checked)

    return declare


def output(
    name: str, *flags: str, kind: OutputPath | None = None, **options: Any
) -> Callable[[Command], Command]:
    """Declare the output of a command, and `--force`; the command itself checks whether it may be replaced."""

    def declare(command: Command) -> Command:
        forced = click.option("--force", is_flag=True, help="Replace what is there.")(command)
        if flags:
            return click.option(*flags, name, type=kind or OutputPath(), **options)(forced)
        return click.argument(name, type=kind or OutputPath(), **options)(forced)

    return declare

"""Final output of a command: one JSON object or text for people, errors on stderr, the exit code."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Generic

import click
from typing_extensions import TypeVar

from kitchensync.shell.terminal import shown

SCHEMA = "schema"
"""Attribute of a command's function: what its JSON object is called."""


Shape = TypeVar("Shape", default=Any)
"""Type of a result: a TypedDict, dataclass or named tuple, from which `docs/reference/answers.md` is made."""


@dataclass(frozen=True)
class Answer(Generic[Shape]):
    """The result of a command."""

    said: Shape
    "The JSON object, or a dataclass or named tuple whose fields are its keys."
    show: Callable[[Shape], object]
    "Prints the same for people; it gets `said`."
    trouble: Sequence[str] = ()
    "A line each on stderr, with `--json` too."
    failed: bool = False
    "Whether the exit code is 1."


def answers(schema: str, *, is_bare: bool = False) -> Callable[[Callable[..., Answer]], Callable[..., None]]:
    """Give a command `--json`: its function returns what it found out, and this prints it and leaves.

    `schema` is written into the object unless it has one, or is one that others defined (`is_bare`). What cannot be
    done is raised, never printed: the group of all commands says it in one line, with `--json` in one object too.
    """

    def declare(command: Callable[..., Answer]) -> Callable[..., None]:
        @functools.wraps(command)
        def answering(*arguments: Any, as_json: bool, **given: Any) -> None:
            answer = command(*arguments, **given)
            if as_json:
                found = _plain(answer.said)
                click.echo(json.dumps(found if is_bare else {SCHEMA: schema, **found}))
            else:
                answer.show(answer.said)
            for line in answer.trouble:
                say(line)
            if answer.failed:
                sys.exit(1)

        setattr(answering, SCHEMA, schema)
        words = f"Print one JSON object ({schema})."
        return click.option("--json", "as_json", is_flag=True, help=words)(answering)

    return declare


def _plain(value: Any) -> Any:
    """Return a result as JSON has it; paths become texts."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: _plain(item) for name, item in value._asdict().items()}
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def say(line: str) -> None:
    """Say one line on stderr, under the name of the program."""
    click.echo(f"kitchensync: {' '.join(line.split())}", err=True, color=True)


def refuse(reason: str, schema: str | None) -> None:
    """Return why nothing was done: one line on stderr, with a schema one object on stdout too."""
    reason = " ".join(reason.split())
    if schema is not None:
        click.echo(json.dumps({SCHEMA: schema, "status": "refused", "reason": reason}))
    say(reason)


def show_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, left: int = 1) -> None:
    """Print rows under their columns: the first `left` columns to the left, the others to the right."""
    cells = [list(columns), *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(row[index]) for row in cells) for index in range(len(columns))]
    for row in cells:
        padded = (
            text.ljust(width) if index < left else text.rjust(width)
            for index, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        click.echo("  ".join(padded).rstrip())


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else shown(str(value))


def size_words(count: int) -> str:
    """Say a number of bytes in at most four digits."""
    size, unit = float(count), "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if size < 999.5 or unit == "TB":
            break
        size /= 1000
    return f"{size:.0f} {unit}" if unit == "B" or size >= 99.95 else f"{size:.1f} {unit}"


def length_words(seconds: float | None) -> str:
    """Say a length as minutes and seconds, or hours too; nothing where nobody knows it."""
    if seconds is None:
        return ""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"

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
"""Key of the schema's name in the JSON object, and attribute of a command's function with that name."""


Shape = TypeVar("Shape", default=Any)
"""Type of a result: a TypedDict, dataclass or named tuple, from which `docs/reference/answers.md` is made."""


@dataclass(frozen=True)
class Answer(Generic[Shape]):
    """The result of a command."""

    content: Shape
    "The JSON object, or a dataclass or named tuple whose fields are its keys."
    show: Callable[[Shape], object]
    "Prints the same for people; it gets `content`."
    trouble: Sequence[str] = ()
    "Lines for stderr, also with `--json`."
    failed: bool = False
    "Whether the exit code is 1."


def answers(schema: str, *, is_bare: bool = False) -> Callable[[Callable[..., Answer]], Callable[..., None]]:
    """Decorate a command with `--json`: its function returns an `Answer`, which is printed, with an exit code.

    `schema` is written into the object unless it has one, or its format is not ours (`is_bare`). Errors are raised,
    not printed: the top-level group prints them in one line, with `--json` in one object too.
    """

    def declare(command: Callable[..., Answer]) -> Callable[..., None]:
        @functools.wraps(command)
        def answering(*arguments: Any, as_json: bool, **options: Any) -> None:
            answer = command(*arguments, **options)
            if as_json:
                found = _plain(answer.content)
                click.echo(json.dumps(found if is_bare else {SCHEMA: schema, **found}))
            else:
                answer.show(answer.content)
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
    """Print one line on stderr, after the name of the program."""
    click.echo(f"kitchensync: {' '.join(line.split())}", err=True, color=True)


def refuse(reason: str, schema: str | None) -> None:
    """Print why a command failed: one line on stderr, with a schema also one object on stdout."""
    reason = " ".join(reason.split())
    if schema is not None:
        click.echo(json.dumps({SCHEMA: schema, "status": "refused", "reason": reason}))
    say(reason)


def show_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, left: int = 1) -> None:
    """Print a table: the first `left` columns are left-aligned, the others right-aligned."""
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
    """Format a number of bytes with at most four digits."""
    size, unit = float(count), "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if size < 999.5 or unit == "TB":
            break
        size /= 1000
    return f"{size:.0f} {unit}" if unit == "B" or size >= 99.95 else f"{size:.1f} {unit}"


def length_words(seconds: float | None) -> str:
    """Format a duration as [h:]mm:ss; empty if unknown."""
    if seconds is None:
        return ""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"

"""What a command says at its end: one JSON object or words for people, trouble on stderr, the exit code."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

SCHEMA = "schema"
"""Attribute of a command's function: what its JSON object is called."""


@dataclass(frozen=True)
class Answer:
    """What a command found out."""

    said: Mapping[str, Any]
    "The JSON object."
    show: Callable[[Any], object]
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
                click.echo(json.dumps(answer.said if is_bare else {SCHEMA: schema, **answer.said}))
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


def say(line: str) -> None:
    """Say one line on stderr, under the name of the program."""
    click.echo(f"kitchensync: {' '.join(line.split())}", err=True)


def refuse(reason: str, schema: str | None) -> None:
    """Say why nothing was done: one line on stderr, with a schema one object on stdout too."""
    reason = " ".join(reason.split())
    if schema is not None:
        click.echo(json.dumps({SCHEMA: schema, "status": "refused", "reason": reason}))
    say(reason)

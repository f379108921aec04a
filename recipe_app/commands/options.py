"""`kitchensync graph`: the group, and what its commands share."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from recipe_app.errors import RecipeError
from storage.shell.given_path import given_path
from storage.shell.outputs import OutputRefused
from storage.shell.refusal import Answered

Found = TypeVar("Found")

FILE = click.argument("file", type=given_path(exists=True))
SEED = click.option(
    "--seed", type=int, default=0, show_default=True, help="The same seed gives the same answer."
)


def as_json_option(schema: str) -> Callable[[Any], Any]:
    """Make the option `--json` of a command."""
    return click.option("--json", "as_json", is_flag=True, help=f"Print one JSON object ({schema}).")


def attempt(make: Callable[[], Found], *, schema: str, about: Path, as_json: bool, **also: str) -> Found:
    """Return what `make` gives. Raises Answered for a known error, after one object with --json."""
    try:
        return make()
    except (RecipeError, OutputRefused) as error:
        if as_json:
            refused = {"status": "refused", "reason": " ".join(str(error).split()), "error": str(error)}
            click.echo(json.dumps({"schema": schema, "file": about.name, **also, **refused}))
        raise Answered(str(error)) from error


def show(answer: Mapping[str, Any]) -> None:
    """Print one JSON object."""
    click.echo(json.dumps(answer, ensure_ascii=False))

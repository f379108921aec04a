"""The commands of `storage`: verify."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

MARKS = {"PASS": "green", "WARN": "yellow", "FAIL": "red"}


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--strict", is_flag=True, help="Let WARN give exit code 1 too.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def verify(paths: tuple[Path, ...], strict: bool, as_json: bool) -> None:
    """Recompute ledger and checksums of recordings from their files alone.

    PATHS are recordings, or folders of recordings.

    \b
    Example:
      kitchensync verify data/take-1
    """
    from storage.verify import FAIL, WARN, recordings_in, verify_all
    from storage.verify import verify as check

    found = [recording for path in paths for recording in recordings_in(path)]
    results = [_checked(check, path, quiet=as_json) for path in found]
    several = len(paths) > 1 or found != [paths[0]]
    answer = verify_all(results) if several else results[0]
    if as_json:
        click.echo(json.dumps(answer))
    else:
        for result in results:
            show(result)
    if answer["status"] == FAIL or (strict and answer["status"] == WARN):
        sys.exit(1)


def _checked(check: Any, path: Path, *, quiet: bool) -> dict[str, Any]:
    """Check one recording; on a terminal say which stream is being read."""
    if quiet or not sys.stderr.isatty():
        result: dict[str, Any] = check(path)
        return result
    from rich.console import Console

    with Console(stderr=True).status(f"{path.name}") as status:
        checked: dict[str, Any] = check(path, lambda stream: status.update(f"{path.name}: {stream}"))
        return checked


def show(result: dict[str, Any]) -> None:
    """Print the balance sheet of one recording for people."""
    click.secho(f"{result['status']}  {result['recording']}", fg=MARKS[result["status"]], bold=True)
    for reason in result["reasons"]:
        click.echo(f"  - {reason}")
    for name, facts in result["streams"].items():
        unit = "bytes" if name.upper().endswith(".MP4") else "packets"
        megabytes = f"{facts['bytes'] / 1e6:9.2f} MB"
        click.echo(f"  {name:28} {facts['stored']:>9} of {facts['received']:>9} {unit:7} {megabytes}")

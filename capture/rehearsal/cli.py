"""The command `kitchensync rehearse`."""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click


@click.command()
@click.option("--scenarios", default=12, show_default=True, help="How many recordings to play.")
@click.option("--seed", default=1, show_default=True, help="Which ones.")
@click.option("--keep", type=click.Path(path_type=Path), help="Keep every recording and its truth here.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def rehearse(scenarios: int, seed: int, keep: Path | None, as_json: bool) -> None:
    """Kill, stop, cut and fill while recording the virtual kitchen, and account for every packet.

    \b
    Example:
      kitchensync rehearse --scenarios 12 --seed 1
    """
    from capture.rehearsal.account import settle
    from capture.rehearsal.scenarios import draw
    from capture.rehearsal.stage import can_mount, play

    small_disk = can_mount()
    if not small_disk:
        click.echo("no small disk can be mounted here: the full disk is left out", err=True)
    accounts = []
    with _folder(keep) as folder:
        for scenario in draw(scenarios, seed, small_disk=small_disk):
            play(scenario, folder / scenario.name)
            accounts.append(settle(folder / scenario.name))
            if not as_json:
                _show(accounts[-1].row())
    answer: dict[str, Any] = {"schema": "rehearse/1", "scenarios": len(accounts)}
    for key in ("unexplained", "duplicates", "unreadable_files"):
        answer[key] = sum(getattr(account, key) for account in accounts)
    answer["rows"] = [account.row() for account in accounts]
    if as_json:
        click.echo(json.dumps(answer))
    else:
        totals = ", ".join(f"{answer[key]} {key.replace('_', ' ')}" for key in list(answer)[2:5])
        click.echo(f"{len(accounts)} scenarios: {totals}")
    if answer["unexplained"] or answer["duplicates"] or answer["unreadable_files"]:
        sys.exit(1)


@contextlib.contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="kitchensync-rehearse-") as name:
        yield Path(name)


def _show(row: dict[str, Any]) -> None:
    fine = not row["unexplained"] and not row["duplicates"]
    text = (
        f"{row['name']:22} {row['produced']:>7} sent {row['stored']:>7} stored {row['named_losses']:>5} named"
    )
    click.secho(f"{text}  {row['unexplained']} unexplained  {row['notes']}", fg="green" if fine else "red")

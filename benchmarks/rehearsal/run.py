"""A rehearsal: scenarios one after the other, each played, accounted for, and remembered."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import NoReturn

import click
from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn

from kitchensync.capture.errors import CaptureError
from kitchensync.storage.errors import StorageError
from kitchensync.storage.shell.end_signals import ending_at_signals
from kitchensync.storage.shell.progress import terminal_bar
from kitchensync.storage.shell.terminal import console, live
from rehearsal.account import Account, settle
from rehearsal.play import play
from rehearsal.scenario_table import answer_of, line_of, table_of
from rehearsal.scenarios import Scenario, draw
from rehearsal.small_disks import can_mount

ROW = "row.json"


class OtherRehearsal(CaptureError):
    """The folder holds scenarios that were drawn otherwise."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"{folder} holds a rehearsal of another seed: give --keep another folder")


def run(scenarios: list[Scenario], folder: Path, *, quiet: bool) -> list[Account]:
    """Play what was not played in the folder yet; return all accounts in order. Raises OtherRehearsal.

    A bar and one line for each scenario go to stderr, unless `quiet`.
    """
    accounts = []
    columns = BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    bar = terminal_bar(*columns, console=console(stderr=True, highlight=False), shown=not quiet)
    with live(bar):
        task = bar.add_task("", total=len(scenarios))
        for scenario in scenarios:
            bar.update(task, description=f"{scenario.name:22}")
            account = kept(scenario, folder) or accounted(folder / scenario.name, partial(play, scenario))
            accounts.append(account)
            bar.advance(task)
            if not quiet:
                style = "green" if account.is_fine else "bold red"
                bar.console.print(line_of(account), style=style, markup=False, soft_wrap=True)
    return accounts


def kept(scenario: Scenario, folder: Path) -> Account | None:
    """Return the account of a scenario that was played here, None if it was not. Raises OtherRehearsal."""
    place = folder / scenario.name
    if any(path != place for path in folder.glob(f"{scenario.number:03d}-*")):
        raise OtherRehearsal(folder)
    if not (place / ROW).exists():
        return None
    facts = json.loads((place / "scenario.json").read_text())
    if any(facts.get(key) != value for key, value in scenario.facts.items()):
        raise OtherRehearsal(folder)
    return Account(**json.loads((place / ROW).read_text()))


def accounted(place: Path, play: Callable[[Path], object]) -> Account:
    """Play in an empty folder and keep the account there; without one, what was not played is played again."""
    shutil.rmtree(place, ignore_errors=True)
    start_s = time.monotonic()
    try:
        play(place)
        account = settle(place)
    except (CaptureError, StorageError, OSError, subprocess.TimeoutExpired) as error:
        return Account(place.name, unexplained=1, notes=str(error))
    account.seconds = round(time.monotonic() - start_s, 1)
    (place / ROW).write_text(json.dumps(asdict(account), indent=1))
    return account


def rehearse(
    scenarios: int, seed: int, keep: Path | None, *, quiet: bool
) -> tuple[dict[str, object], str, bool]:
    """Draw and play scenarios, in `keep` if given; return `rehearse/1`, a table, and whether all are fine."""
    small_disks = can_mount()
    if not small_disks:
        click.echo("no small disk can be mounted here: full disks are left out", err=True)
    drawn = draw(scenarios, seed, can_mount=small_disks)
    with (
        ending_at_signals(_interrupt),
        nullcontext(keep) if keep else tempfile.TemporaryDirectory(prefix="kitchensync-rehearse-") as folder,
    ):
        Path(folder).mkdir(parents=True, exist_ok=True)
        accounts = run(drawn, Path(folder).resolve(), quiet=quiet)
    return answer_of(accounts), table_of(accounts), all(account.is_fine for account in accounts)


def _interrupt() -> NoReturn:
    """End a rehearsal at SIGTERM as Ctrl-C does: with everything put away."""
    raise KeyboardInterrupt

"""A rehearsal: scenarios one after the other, each played, accounted for and kept."""

import json
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import click

from kitchensync.capture.errors import CaptureError
from kitchensync.shell.answer import Answer
from kitchensync.shell.end_signals import ending_at_signals
from kitchensync.shell.progress import Bar
from kitchensync.storage.errors import StorageError
from rehearsal.account import BAD, Account, settle
from rehearsal.play import play
from rehearsal.scenarios import Scenario, draw
from rehearsal.small_disks import can_mount

ROW = "row.json"


def rehearse(count: int, seed: int, keep: Path | None, *, quiet: bool) -> Answer:
    """Draw and play scenarios, in `keep` if given; return `rehearse/1`. Raises CaptureError.

    A bar and a line for each scenario go to stderr, unless `quiet`.
    """
    small_disks = can_mount()
    if not small_disks:
        click.echo("no small disk can be mounted here: full disks are left out", err=True)
    accounts = []
    with (
        ending_at_signals(partial(signal.default_int_handler, signal.SIGINT, None)),
        nullcontext(keep) if keep else tempfile.TemporaryDirectory(prefix="kitchensync-rehearse-") as place,
        Bar("rehearse", unit="scenarios", shown=not quiet) as bar,
    ):
        folder = Path(place).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        for scenario in draw(count, seed, can_mount=small_disks):
            bar.show(scenario.number, count, scenario.name)
            account = kept(scenario, folder) or accounted(folder / scenario.name, partial(play, scenario))
            accounts.append(account)
            if not quiet:
                click.secho(line_of(account), fg="green" if account.is_fine else "red", err=True)
    is_fine = all(account.is_fine for account in accounts)
    return Answer(answer_of(accounts), lambda answer: click.echo(last_line_of(answer)), failed=not is_fine)


def kept(scenario: Scenario, folder: Path) -> Account | None:
    """Return the account of a scenario that was played here, None if it was not. Raises CaptureError."""
    place = folder / scenario.name
    is_played = (place / ROW).exists()
    facts = json.loads((place / "scenario.json").read_text()) if is_played else scenario.facts
    others = set(folder.glob(f"{scenario.number:03d}-*")) - {place}
    if others or not scenario.facts.items() <= facts.items():
        raise CaptureError(f"{folder} holds a rehearsal of another seed: give --keep another folder")
    return Account(**json.loads((place / ROW).read_text())) if is_played else None


def accounted(place: Path, play: Callable[[Path], object]) -> Account:
    """Play in an empty folder and keep the account there; what could not be played is played again later."""
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


def line_of(account: Account) -> str:
    """Return one scenario as a line of text."""
    counts = f"{account.produced:>7} sent {account.stored:>7} stored {account.named_losses:>5} named"
    judged = f"{account.unexplained:>5} unexplained {account.wrong_causes:>3} wrong"
    return f"{account.name:22} {counts} {judged}  {account.verdict:7} {account.notes}".rstrip()


def answer_of(accounts: list[Account]) -> dict[str, Any]:
    """Return the object `rehearse/1`."""
    return {
        "scenarios": len(accounts),
        **{key: sum(getattr(account, key) for account in accounts) for key in BAD},
        "seconds": round(sum(account.seconds for account in accounts), 1),
        "rows": [asdict(account) for account in accounts],
    }


def last_line_of(answer: dict[str, Any]) -> str:
    """Return the sum of all scenarios as a line of text."""
    counts = ", ".join(f"{answer[key]} {key.replace('_', ' ')}" for key in BAD)
    return f"{answer['scenarios']} scenarios: {counts}"

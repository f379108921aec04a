"""The command `kitchensync rehearse`."""

from __future__ import annotations

import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import NoReturn

import click

from kitchensync.storage.shell.answer import Answer, answers
from kitchensync.storage.shell.output_options import OutputFolder


@click.command()
@click.option(
    "--scenarios",
    type=click.IntRange(min=1),
    default=12,
    show_default=True,
    help="How many recordings to play.",
)
@click.option("--seed", default=1, show_default=True, help="The same seed plays the same faults.")
@click.option(
    "--keep",
    type=OutputFolder(),
    help="Keep every recording and its truth here; go on there later.",
)
@answers("rehearse/1")
def rehearse(scenarios: int, seed: int, keep: Path | None) -> Answer:
    """Inject faults while recording the virtual kitchen, and account for every packet.

    Plays one short recording after the other, about fifteen seconds each. Ctrl-C ends it with nothing left
    behind; with --keep the same command goes on where it was.

    \b
    Example:
      kitchensync rehearse --scenarios 12 --seed 1
    """
    from kitchensync.capture.rehearsal.run import run
    from kitchensync.capture.rehearsal.scenario_table import answer_of, table_of
    from kitchensync.capture.rehearsal.scenarios import draw
    from kitchensync.capture.rehearsal.small_disks import can_mount
    from kitchensync.storage.shell.end_signals import ending_at_signals

    small_disks = can_mount()
    if not small_disks:
        click.echo("no small disk can be mounted here: full disks are left out", err=True)
    drawn = draw(scenarios, seed, can_mount=small_disks)
    with (
        ending_at_signals(_interrupt),
        nullcontext(keep) if keep else tempfile.TemporaryDirectory(prefix="kitchensync-rehearse-") as folder,
    ):
        Path(folder).mkdir(parents=True, exist_ok=True)
        accounts = run(drawn, Path(folder).resolve(), quiet=click.get_current_context().params["as_json"])
    failed = not all(account.is_fine for account in accounts)
    return Answer(answer_of(accounts), lambda _: click.echo(table_of(accounts)), failed=failed)


def _interrupt() -> NoReturn:
    """End a rehearsal at SIGTERM as Ctrl-C does: with everything put away."""
    raise KeyboardInterrupt

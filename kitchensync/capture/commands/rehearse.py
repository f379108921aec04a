"""The command `kitchensync rehearse`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import click

from kitchensync.capture.errors import CaptureError
from kitchensync.shell.answer import Answer, answers
from kitchensync.storage.options.output_options import OutputFolder

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"


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
    help="Keep every recording and its ground truth here, and resume there later.",
)
@answers("rehearse/1")
def rehearse(scenarios: int, seed: int, keep: Path | None) -> Answer:
    """Inject faults while recording the virtual kitchen, and account for every packet. Needs a clone.

    Makes one short recording after the other, about fifteen seconds each. Ctrl-C ends it and removes all files; with
    --keep the same command resumes.

    \b
    Example:
      kitchensync rehearse --scenarios 12 --seed 1
    """
    if not (BENCHMARKS / "rehearsal").is_dir():
        raise CaptureError("rehearse needs a clone of KitchenSync: it is not part of an installed package")
    sys.path.insert(0, str(BENCHMARKS))
    run = importlib.import_module("rehearsal.run")
    answer: Answer = run.rehearse(scenarios, seed, keep, quiet=click.get_current_context().params["as_json"])
    return answer

"""`kitchensync measure`: what models answered, scored by published equations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from storage.shell.answer import Answer, answers
from storage.shell.given_path import given_path

SUMMARY = click.option("--summary", is_flag=True, help="Print the means instead, one JSON object.")


@click.group()
def measure() -> None:
    """Score what models answered, by published equations; without a model, a film or a network.

    \b
    Example:
      kitchensync measure spans cases.json --summary
    """


@measure.command()
@click.argument("cases", type=given_path(exists=True, dir_okay=False))
@SUMMARY
@answers("measure-spans/1", is_bare=True)
def spans(cases: Path, summary: bool) -> Answer:
    """Measure how well spans of time agree with the true ones; print the cases again with an answer at each.

    CASES is a list of {truth: [[start, end]..], predictions: {model: {spans: [[start, end]..]}}}. `answer` has iou,
    iop (share of what was predicted) and iog (share of the truth), overlapping spans counted once, and how many spans
    were dropped since they do not end after they begin. As the published scorer has it, not the printed equation.

    \b
    Example:
      kitchensync measure spans cases.json --summary
    """
    from recipe_app.releases.measures.span_agreement import answered
    from recipe_app.releases.measures.span_agreement import summary as means

    found = answered(_read(cases), cases.name)
    return _answer({"schema": "measure-spans/1", "models": means(found)} if summary else found)


@measure.command()
@click.argument("dialogs", type=given_path(exists=True, dir_okay=False))
@click.option(
    "--unsure",
    type=click.FloatRange(0, 0.5),
    default=0.1,
    show_default=True,
    help="An answer whose probability is nearer than this to one half counts as none.",
)
@SUMMARY
@answers("measure-coherence/1", is_bare=True)
def coherence(dialogs: Path, unsure: float, summary: bool) -> Answer:
    """Measure dialogs that decide whether a step was done without a mistake; print them again with their measures.

    DIALOGS is a list of {label: 1 for a mistake, turns: [{p_yes, p_no, prev_p_yes, prev_p_no, answer, vqa}..],
    success: [p..]}, all probabilities from 0 to 1. As the published code has it; with --summary the means, with
    consistency and verifiability.

    \b
    Example:
      kitchensync measure coherence dialogs.json --summary
    """
    from recipe_app.releases.measures.coherence import answered
    from recipe_app.releases.measures.coherence import summary as means

    found = answered(_read(dialogs), dialogs.name, unsure)
    return _answer({"schema": "measure-coherence/1", **means(found)} if summary else found)


def _read(path: Path) -> bytes:
    """Read a file that is not too large to be meant. Raises BadGraph."""
    from recipe_app.errors import BadGraph
    from recipe_app.releases.measures.cases import MOST_BYTES

    if path.stat().st_size > MOST_BYTES:
        raise BadGraph(path.name, "", f"larger than {MOST_BYTES} bytes; divide it")
    return path.read_bytes()


def _answer(said: Any) -> Answer:
    return Answer(said, lambda found: click.echo(json.dumps(found, indent=1, ensure_ascii=False)))

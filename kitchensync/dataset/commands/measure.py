"""`kitchensync measure`: score the answers of models with published metrics."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import click

from kitchensync.dataset.commands.export_source import STRICT, Assessed, answer, status_of, write_list
from kitchensync.dataset.commands.options import SHOW_REQUESTS, ask_server, list_requests, require_server
from kitchensync.dataset.measures.cases import MOST_BYTES
from kitchensync.dataset.measures.coherence import DialogMeans
from kitchensync.dataset.measures.span_agreement import SpanCase, SpanMeans, answered, overlapping
from kitchensync.dataset.measures.span_agreement import summary as means
from kitchensync.dataset.promqa.answer_judge import (
    JudgedCase,
    cases_of,
    judge_prompt,
    judged,
    score,
    verdicts_of,
)
from kitchensync.shell.answer import Answer, Shape, answers
from kitchensync.storage.options.given_path import given_path
from kitchensync.storage.options.output_options import output_file
from kitchensync.storage.options.outputs import check_output
from kitchensync.task_graphs.formats.graph_files import read_bytes

if TYPE_CHECKING:
    from kitchensync.dataset.measures.coherence import Dialog


class MeansOfModels(TypedDict):
    """The object `measure-spans/1`, with --summary."""

    schema: str
    models: dict[str, SpanMeans]


class MeansOfDialogs(DialogMeans):
    """The object `measure-coherence/1`, with --summary."""

    schema: str


class RequestCount(TypedDict):
    """Number of requests that would be sent."""

    host: str
    requests: int


class _ByOption(TypedDict, total=False):
    scale: str
    "binary or ternary."
    read: int
    "Cases with a verdict."
    score: float | None
    "Percent."
    refused: int
    "Replies that are no verdict."
    asked: int
    failed: int
    failures: dict[str, int]
    "Kind of failure: requests."
    known_before: int
    "Replies of an earlier run."
    would_send: RequestCount
    "With --show-requests."


class JudgedAnswers(Assessed, _ByOption):
    """The object `measure-answers/1`."""

    file: str


SUMMARY = click.option("--summary", is_flag=True, help="Print the means instead, one JSON object.")


@click.group()
def measure() -> None:
    """Score the answers of models with published metrics; only `answers` asks a model.

    \b
    Example:
      kitchensync measure spans cases.json --summary
    """


@measure.command()
@click.argument("cases", type=given_path(exists=True, dir_okay=False))
@SUMMARY
@answers("measure-spans/1", is_bare=True)
def spans(cases: Path, summary: bool) -> Answer[MeansOfModels | list[SpanCase]]:
    """Measure how well predicted time spans agree with the true spans; print the cases with an answer for each.

    CASES is a list of {truth: [[start, end]..], predictions: {model: {spans: [[start, end]..]}}}. `answer` has iou,
    iop (share of the prediction) and iog (share of the truth), overlapping spans counted once, and the number of
    dropped spans, which do not end after they begin. This follows the published scorer, not the printed equation.

    \b
    Example:
      kitchensync measure spans cases.json --summary
    """
    results = answered(_read(cases), cases.name)
    count = overlapping(results)
    warnings = (
        [f"{count} lists have overlapping spans, which the printed equation counts twice"] if count else []
    )
    if summary:
        of_models: MeansOfModels = {"schema": "measure-spans/1", "models": means(results)}
        return _answer(of_models, warnings)
    return _answer(results, warnings)


@measure.command()
@click.argument("dialogs", type=given_path(exists=True, dir_okay=False))
@click.option(
    "--unsure",
    type=click.FloatRange(0, 0.5),
    default=0.1,
    show_default=True,
    help="An answer with a probability closer than this to one half counts as unsure.",
)
@click.option(
    "--corrected", is_flag=True, help="Measure as in the paper [default: as the published code, WARN]."
)
@SUMMARY
@answers("measure-coherence/1", is_bare=True)
def coherence(
    dialogs: Path, unsure: float, corrected: bool, summary: bool
) -> Answer[MeansOfDialogs | list[Dialog]]:
    """Measure dialogs that decide whether a step was done without a mistake; print them with their measures.

    DIALOGS is a list of {label: 1 for a mistake, turns: [{p_yes, p_no, prev_p_yes, prev_p_no, answer, vqa}..],
    success: [p..]}, all probabilities from 0 to 1. This follows the published code; with --summary the means, with
    consistency, verifiability and the threshold of the best decisions. A turn's `candidates`, a list of {prev_p_yes,
    prev_p_no}, are possible questions: `best_questions` gives the best.

    \b
    Example:
      kitchensync measure coherence dialogs.json --summary
    """
    from kitchensync.dataset.measures.coherence import answered, differ_from_paper, verifiability_of
    from kitchensync.dataset.measures.coherence import summary as means

    results = answered(_read(dialogs), dialogs.name, unsure, corrected=corrected)
    first = "an unsure turn counts 0 and is the largest, as in the published code; --corrected leaves it out"
    second = "verifiability is negative, as in the published code; --corrected takes 0"
    counts = {
        first: differ_from_paper(results, unsure),
        second: sum(value < 0 for value in verifiability_of(results)),
    }
    warnings = [f"in {count} dialogs {why}" for why, count in counts.items() if count and not corrected]
    if summary:
        of_all: MeansOfDialogs = {"schema": "measure-coherence/1", **means(results, corrected=corrected)}
        return _answer(of_all, warnings)
    return _answer(results, warnings)


@measure.command(name="answers")
@click.argument("cases", type=given_path(exists=True, dir_okay=False))
@output_file(
    "out", "--out", required=True, metavar="FILE.json", help="List to write: the cases, each with `judge`."
)
@click.option("--scale", type=click.Choice(["binary", "ternary"]), default="ternary", show_default=True)
@click.option(
    "--verdicts",
    type=given_path(exists=True, dir_okay=False),
    help="List of a judge's verdicts, one per case: a number, a text that ends with [Judge] and a number, or null. "
    "No server is asked then.",
)
@SHOW_REQUESTS
@STRICT
@answers("measure-answers/1")
def answers_(
    cases: Path, out: Path, force: bool, scale: str, verdicts: Path | None, show_requests: bool, strict: bool
) -> Answer[JudgedAnswers]:
    """Score the answers of models by a judge: 0 wrong, 1 right, or 0 wrong, 1 partly, 2 right.

    CASES is a list of {question, answers: [..], prediction}. Without --verdicts an OpenAI-compatible server judges:
    KITCHENSYNC_JUDGE_URL, KITCHENSYNC_JUDGE_MODEL and, if it requires a key, KITCHENSYNC_JUDGE_KEY_FILE or
    KITCHENSYNC_JUDGE_KEY_ENV. A reply without exactly one number of the scale at its end is refused and counted, and
    its case has no verdict; the score, in percent, is over the others. FILE.answers.jsonl keeps all replies.

    \b
    Example:
      kitchensync measure answers cases.json --scale binary --out judged.json
    """
    from kitchensync.storage.consent import Purpose, require_consent_for_file

    if verdicts is not None and show_requests:
        raise click.UsageError("--verdicts sends no requests: there is nothing to show")
    check_output(out, force=force)  # before a model is asked: answers cost money
    all_cases = cases_of(_read(cases), cases.name)
    if verdicts is not None:
        texts = verdicts_of(_read(verdicts), verdicts.name, len(all_cases))
        rows, refused, scored = _scored(all_cases, texts, scale)
        write_list(out, rows, force=force)
        warnings = [f"{refused} cases have no verdict: not a number of the scale"] if refused else []
        scored["refused"] = refused
        return _judged(scored, warnings, f"{scored['read']} verdicts in {out}", out, strict=strict)
    require_consent_for_file(cases, Purpose.THIRD_PARTY_PROCESSING)
    server = require_server("judge")
    prompts = {str(number): judge_prompt(case, scale) for number, case in enumerate(all_cases)}
    if show_requests:
        write_list(out, list_requests(server, prompts), force=force)
        to_send: _ByOption = {"would_send": {"host": server.host, "requests": len(prompts)}}
        return _judged(to_send, [], f"{len(prompts)} requests would be sent, in {out}", out, strict=strict)
    replies = ask_server(server, prompts, out, "answers")
    rows, refused, scored = _scored(all_cases, [replies.texts[number] for number in prompts], scale)
    write_list(out, rows, force=force)
    summary = f"{scored['read']} verdicts in {out}"
    counted: _ByOption = {**scored, **replies.counts(refused)}
    return _judged(counted, replies.warnings("answers", refused), summary, out, strict=strict)


def _judged(
    more: _ByOption, warnings: list[str], summary: str, out: Path, *, strict: bool
) -> Answer[JudgedAnswers]:
    report: JudgedAnswers = {
        "status": status_of(warnings), **more, "file": str(out), "warnings": warnings
    }  # fmt: skip
    return answer(report, summary, strict=strict)


def _scored(
    cases: Sequence[Mapping[str, object]], texts: list[str | None], scale: str
) -> tuple[list[JudgedCase], int, _ByOption]:
    """Return the cases with their verdicts, the number of refused texts, and the score."""
    rows = [judged(case, text, scale) for case, text in zip(cases, texts, strict=True)]
    verdicts = [row["judge"]["verdict"] for row in rows if row["judge"]["verdict"] is not None]
    scored: _ByOption = {"scale": scale, "read": len(verdicts), "score": score(verdicts, scale)}
    return rows, sum("refused" in row["judge"] for row in rows), scored


def _read(path: Path) -> bytes:
    """Read a file of limited size. Raises BadGraph."""
    return read_bytes(path, most_bytes=MOST_BYTES)


def _answer(content: Shape, warnings: list[str]) -> Answer[Shape]:
    lines = [f"WARN: {line}" for line in warnings]
    return Answer(content, lambda data: click.echo(json.dumps(data, indent=1, ensure_ascii=False)), lines)

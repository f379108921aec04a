"""`kitchensync measure`: score the answers of models with published metrics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from kitchensync.dataset.commands.export_source import STRICT, answer, write_list
from kitchensync.dataset.commands.options import SHOW_REQUESTS, ask_server, list_requests, require_server
from kitchensync.dataset.measures.cases import MOST_BYTES
from kitchensync.dataset.measures.span_agreement import answered, overlapping
from kitchensync.dataset.measures.span_agreement import summary as means
from kitchensync.dataset.promqa.answer_judge import cases_of, judge_prompt, judged, score, verdicts_of
from kitchensync.shell.answer import Answer, answers
from kitchensync.storage.options.given_path import given_path
from kitchensync.storage.options.output_options import output_file
from kitchensync.storage.options.outputs import check_output
from kitchensync.task_graphs.formats.graph_files import read_bytes

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
def spans(cases: Path, summary: bool) -> Answer:
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
    return _answer({"schema": "measure-spans/1", "models": means(results)} if summary else results, warnings)


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
def coherence(dialogs: Path, unsure: float, corrected: bool, summary: bool) -> Answer:
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
    means_or_all = (
        {"schema": "measure-coherence/1", **means(results, corrected=corrected)} if summary else results
    )
    return _answer(means_or_all, warnings)


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
) -> Answer:
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
        rows, refused, report = _scored(all_cases, texts, scale)
        write_list(out, rows, force=force)
        warnings = [f"{refused} cases have no verdict: not a number of the scale"] if refused else []
        report |= {"refused": refused, "file": str(out)}
        return answer(report, warnings, f"{report['read']} verdicts in {out}", strict=strict)
    require_consent_for_file(cases, Purpose.THIRD_PARTY_PROCESSING)
    server = require_server("judge")
    prompts = {str(number): judge_prompt(case, scale) for number, case in enumerate(all_cases)}
    if show_requests:
        write_list(out, list_requests(server, prompts), force=force)
        to_send = {"would_send": {"host": server.host, "requests": len(prompts)}, "file": str(out)}
        return answer(to_send, [], f"{len(prompts)} requests would be sent, in {out}", strict=strict)
    replies = ask_server(server, prompts, out, "answers")
    rows, refused, report = _scored(all_cases, [replies.texts[number] for number in prompts], scale)
    write_list(out, rows, force=force)
    summary = f"{report['read']} verdicts in {out}"
    report |= {**replies.counts(refused), "file": str(out)}
    return answer(report, replies.warnings("answers", refused), summary, strict=strict)


def _scored(
    cases: list[dict[str, Any]], texts: list[str | None], scale: str
) -> tuple[list[dict[str, Any]], int, dict[str, object]]:
    """Return the cases with their verdicts, the number of refused texts, and the score."""
    rows = [judged(case, text, scale) for case, text in zip(cases, texts, strict=True)]
    verdicts = [row["judge"]["verdict"] for row in rows if row["judge"]["verdict"] is not None]
    report: dict[str, object] = {"scale": scale, "read": len(verdicts), "score": score(verdicts, scale)}
    return rows, sum("refused" in row["judge"] for row in rows), report


def _read(path: Path) -> bytes:
    """Read a file of limited size. Raises BadGraph."""
    return read_bytes(path, most_bytes=MOST_BYTES)


def _answer(content: Any, warnings: list[str]) -> Answer:
    lines = [f"WARN: {line}" for line in warnings]
    return Answer(content, lambda data: click.echo(json.dumps(data, indent=1, ensure_ascii=False)), lines)

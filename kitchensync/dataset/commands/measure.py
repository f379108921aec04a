"""`kitchensync measure`: what models answered, scored by published equations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from kitchensync.dataset.commands.export_source import STRICT, answer, write_list
from kitchensync.dataset.commands.options import SHOW_REQUESTS, asked, named_server, shown
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
    """Measure how well spans of time agree with the true ones; print the cases again with an answer at each.

    CASES is a list of {truth: [[start, end]..], predictions: {model: {spans: [[start, end]..]}}}. `answer` has iou,
    iop (share of what was predicted) and iog (share of the truth), overlapping spans counted once, and how many spans
    were dropped since they do not end after they begin. As the published scorer has it, not the printed equation.

    \b
    Example:
      kitchensync measure spans cases.json --summary
    """
    found = answered(_read(cases), cases.name)
    count = overlapping(found)
    warnings = (
        [f"{count} lists have spans that overlap: the printed equation counts those twice"] if count else []
    )
    return _answer({"schema": "measure-spans/1", "models": means(found)} if summary else found, warnings)


@measure.command()
@click.argument("dialogs", type=given_path(exists=True, dir_okay=False))
@click.option(
    "--unsure",
    type=click.FloatRange(0, 0.5),
    default=0.1,
    show_default=True,
    help="An answer whose probability is nearer than this to one half counts as none.",
)
@click.option(
    "--corrected", is_flag=True, help="Measure as in the paper [default: as the published code, WARN]."
)
@SUMMARY
@answers("measure-coherence/1", is_bare=True)
def coherence(dialogs: Path, unsure: float, corrected: bool, summary: bool) -> Answer:
    """Measure dialogs that decide whether a step was done without a mistake; print them again with their measures.

    DIALOGS is a list of {label: 1 for a mistake, turns: [{p_yes, p_no, prev_p_yes, prev_p_no, answer, vqa}..],
    success: [p..]}, all probabilities from 0 to 1. As the published code has it; with --summary the means, with
    consistency, verifiability and the threshold of the best decisions. A turn's `candidates`, a list of {prev_p_yes,
    prev_p_no}, are questions that could be asked: `best_questions` names the best.

    \b
    Example:
      kitchensync measure coherence dialogs.json --summary
    """
    from kitchensync.dataset.measures.coherence import answered, differ_from_paper, proven_by
    from kitchensync.dataset.measures.coherence import summary as means

    found = answered(_read(dialogs), dialogs.name, unsure, corrected=corrected)
    first = "an unsure turn counts 0 and is the largest, as in the published code; --corrected leaves it out"
    second = "verifiability is negative, as in the published code; --corrected takes 0"
    counts = {first: differ_from_paper(found, unsure), second: sum(value < 0 for value in proven_by(found))}
    warnings = [f"in {count} dialogs {why}" for why, count in counts.items() if count and not corrected]
    said = {"schema": "measure-coherence/1", **means(found, corrected=corrected)} if summary else found
    return _answer(said, warnings)


@measure.command(name="answers")
@click.argument("cases", type=given_path(exists=True, dir_okay=False))
@output_file(
    "out", "--out", required=True, metavar="FILE.json", help="List to write: the cases, each with `judge`."
)
@click.option("--scale", type=click.Choice(["binary", "ternary"]), default="ternary", show_default=True)
@click.option(
    "--verdicts",
    "given",
    type=given_path(exists=True, dir_okay=False),
    help="List of what any judge said, one a case: a number, a text that ends with [Judge] and a number, or null. "
    "No server is asked then.",
)
@SHOW_REQUESTS
@STRICT
@answers("measure-answers/1")
def answers_(
    cases: Path, out: Path, force: bool, scale: str, given: Path | None, show_requests: bool, strict: bool
) -> Answer:
    """Score the answers of models by a judge: 0 wrong, 1 right, or 0 wrong, 1 partly, 2 right.

    CASES is a list of {question, answers: [..], prediction}. Without --verdicts an OpenAI-compatible server judges:
    KITCHENSYNC_JUDGE_URL, KITCHENSYNC_JUDGE_MODEL and, if it wants a key, KITCHENSYNC_JUDGE_KEY_FILE or
    KITCHENSYNC_JUDGE_KEY_ENV. A verdict that is not one number of the scale in its place is refused and counted, and
    the case has none; the score, in percent, is over the others. What came back is in FILE.answers.jsonl.

    \b
    Example:
      kitchensync measure answers cases.json --scale binary --out judged.json
    """
    from kitchensync.storage.consent import Purpose, require_consent_for_file

    if given is not None and show_requests:
        raise click.UsageError("--verdicts asks nobody: there are no requests to show")
    check_output(out, force=force)  # before a model is asked: answers cost money
    found = cases_of(_read(cases), cases.name)
    if given is not None:
        texts = verdicts_of(_read(given), given.name, len(found))
        rows, refused, said = _scored(found, texts, scale)
        write_list(out, rows, force=force)
        warnings = (
            [f"{refused} verdicts are no number of the scale, and their cases have none"] if refused else []
        )
        said |= {"refused": refused, "file": str(out)}
        return answer(said, warnings, f"{said['read']} verdicts in {out}", strict=strict)
    require_consent_for_file(cases, Purpose.THIRD_PARTY_PROCESSING)
    server = named_server("judge")
    requests = {str(number): judge_prompt(case, scale) for number, case in enumerate(found)}
    if show_requests:
        write_list(out, shown(server, requests), force=force)
        sent = {"would_send": {"host": server.host, "requests": len(requests)}, "file": str(out)}
        return answer(sent, [], f"{len(requests)} requests would be sent, in {out}", strict=strict)
    replies = asked(server, requests, out, "answers")
    rows, refused, said = _scored(found, [replies.texts[str(number)] for number in range(len(found))], scale)
    write_list(out, rows, force=force)
    words = f"{said['read']} verdicts in {out}"
    said |= {**replies.counts(refused), "file": str(out)}
    return answer(said, replies.warnings("answers", refused), words, strict=strict)


def _scored(
    found: list[dict[str, Any]], texts: list[str | None], scale: str
) -> tuple[list[dict[str, Any]], int, dict[str, Any]]:
    """Return the cases with their verdicts, how many texts hold none, and the score."""
    rows = [judged(case, text, scale) for case, text in zip(found, texts, strict=True)]
    verdicts = [row["judge"]["verdict"] for row in rows if row["judge"]["verdict"] is not None]
    said = {"scale": scale, "read": len(verdicts), "score": score(verdicts, scale)}
    return rows, sum("refused" in row["judge"] for row in rows), said


def _read(path: Path) -> bytes:
    """Read a file that is not too large to be meant. Raises BadGraph."""
    return read_bytes(path, most_bytes=MOST_BYTES)


def _answer(said: Any, warnings: list[str]) -> Answer:
    lines = [f"WARN: {line}" for line in warnings]
    return Answer(said, lambda found: click.echo(json.dumps(found, indent=1, ensure_ascii=False)), lines)

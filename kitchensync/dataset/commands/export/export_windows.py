"""`kitchensync export windows`: clips of consecutive steps, and questions about objects in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Literal, TypedDict

import click

from kitchensync.dataset.commands.export_source import (
    ExportedList,
    answer,
    check_kept_in_recordings,
    in_parts,
    read_source,
    read_split,
    source_arguments,
    status_of,
    write_list,
)
from kitchensync.dataset.commands.options import (
    SEED,
    SHOW_REQUESTS,
    ask_server,
    list_requests,
    require_server,
)
from kitchensync.dataset.examples.model_answers import AnswerCounts, RequestToSend
from kitchensync.dataset.examples.opinion_rows import evidence_rows
from kitchensync.dataset.grounding.object_questions import (
    MOST_TEXT,
    Question,
    checked,
    draw_questions,
    evidence_prompt,
    guess_prompt,
    questions,
    rating_prompt,
)
from kitchensync.dataset.source.consent_of_all import allowed_for_processing
from kitchensync.dataset.source.source_data import SourceData
from kitchensync.dataset.tables.localization import Split
from kitchensync.dataset.tables.step_rows import ClipCounts, StepsClip, count_clips, past_the_film
from kitchensync.dataset.tables.step_rows import windows as clips
from kitchensync.shell.answer import Answer, answers
from kitchensync.storage.options.given_path import given_path
from kitchensync.storage.options.output_options import output_file
from kitchensync.storage.options.outputs import check_output


class RequestsSize(TypedDict):
    """Number and size of what would be sent."""

    requests: int
    bytes: int


class _ByOption(TypedDict, total=False):
    candidates: dict[str, int]
    "With --questions: questions by type."
    verified: dict[str, int]
    "With --verified: valid questions by type."
    rejected: int
    cases: str
    "File of both passes of every question."
    mean_iou: float | None
    "Overlap of both passes."
    would_send: RequestsSize
    "With --show-requests."
    checks: dict[str, AnswerCounts]
    "With --model: guesses, ratings, evidence_checks."
    dropped: dict[str, int]
    "Why a model drops questions: their number."
    by_split: dict[str, int]
    "With --split: rows by part."


class WindowClips(ExportedList, _ByOption):
    """The object `export-windows/1`."""

    windows: dict[str, ClipCounts]
    "By number of steps."
    left_out: int
    "Clips longer than --max-seconds."


@click.command()
@source_arguments
@output_file("out", "--out", required=True, metavar="FILE.json", help="List to write.")
@click.option(
    "--sizes", default="2,3,4,5", show_default=True, help="Numbers of steps in a clip, separated by commas."
)
@click.option(
    "--max-seconds", type=click.FloatRange(0, min_open=True), help="Leave out clips longer than this."
)
@click.option("--questions", "asks", is_flag=True, help="Write questions about objects in the clips instead.")
@click.option("--sample", "count", type=click.IntRange(1), help="Draw this many questions [default: all].")
@SEED
@click.option(
    "--model",
    "by_model",
    is_flag=True,
    help="Have models check the questions: texts of steps and errors leave this computer.",
)
@SHOW_REQUESTS
@click.option(
    "--verified",
    is_flag=True,
    help="Write the questions with evidence that two people marked at the desk instead (own recordings).",
)
@click.option(
    "--split",
    type=given_path(exists=True, dir_okay=False),
    help="Parts of recordings, as `release split` writes them: adds `split` to each row.",
)
@answers("export-windows/1")
def windows(
    paths: tuple[Path, ...],
    strict: bool,
    out: Path,
    force: bool,
    sizes: str,
    max_seconds: float | None,
    asks: bool,
    count: int | None,
    seed: int,
    by_model: bool,
    show_requests: bool,
    verified: bool,
    split: Path | None,
) -> Answer[WindowClips]:
    """Write clips of consecutive steps: id, recording, start, end, step_ids, nodes, texts, spans and more.

    Times are seconds of the video. Steps are ordered by their start; a clip ends with the last end among its steps,
    and the next clip begins one step later. `objects` are the ingredients and tools that the texts name.

    --questions asks about an object that two steps of a clip name, in the five forms of ProcObject-10K, with an
    answer from the texts. With --model, the server of KITCHENSYNC_QUESTIONS_URL and _MODEL answers each question
    without the video, and the server of KITCHENSYNC_JUDGE_URL and _MODEL rates the answer (1 to 5) and decides
    whether the steps contain it; keys as in `export promqa`. `dropped` is commonsense (4 or 5) or evidence; `checks`
    holds all replies. Only recordings with consent to third_party_processing are sent. The desk imports the list.

    --verified writes questions with the evidence that two people marked: keys as published, evidence in seconds from
    the clip's start. Both passes of every question, also of rejected questions, go into FILE.cases.json for `measure
    spans`; if both people marked that the video does not show the answer, the overlap is 0. `reasoning` is multi-hop
    if the evidence has several moments; `iou` is the overlap of both passes; `about` are the steps that overlap the
    evidence, and --model checks those.

    \b
    Example:
      kitchensync export windows our-kitchens --sizes 2,3 --max-seconds 120 --out windows.json
    """
    numbers = [number.strip() for number in sizes.split(",")]
    if not all(number.isdecimal() and 1 <= int(number) <= 1000 for number in numbers):
        raise click.BadParameter(f"{sizes!r}: not numbers of steps, such as 2,3", param_hint="--sizes")
    if verified and asks:
        raise click.UsageError("--questions and --verified exclude each other; give one of them")
    if (by_model or show_requests) and not (asks or verified):
        raise click.UsageError("--model and --show-requests are for --questions or --verified")
    if count and not asks:
        raise click.UsageError("--sample is for --questions")
    cases = out.with_suffix(".cases.json")
    for file in (out, cases) if verified else (out,):
        check_output(file, force=force)  # before a model is asked: answers cost money
    source = read_source(paths)
    if verified:
        check_kept_in_recordings(source, "verified questions")
    recordings = source.by_recipe
    by_size = {
        size: [clip for recording in recordings for clip in clips(recording, size)]
        for size in dict.fromkeys(map(int, numbers))
    }
    limit = float("inf") if max_seconds is None else max_seconds
    kept = {
        size: [clip for clip in of_size if clip["end"] - clip["start"] <= limit]
        for size, of_size in by_size.items()
    }
    windows = [clip for of_size in kept.values() for clip in of_size]
    rows: list[Question] = []
    more: _ByOption = {}
    warnings = past_the_film(source.data) + source.warnings
    if asks:
        recipes = {recording.recording_id: recording.activity_name for recording in recordings}
        rows = [row for clip in windows for row in questions(clip, recipes[clip["recording"]])]
        rows = draw_questions(rows, count, seed) if count else rows
        if count and len(rows) < count:
            warnings.append(
                f"only {len(rows)} of {count} questions can be drawn: a question with the same words is taken once "
                "per recording; more recordings or other --sizes give more"
            )
        more["candidates"] = _by_type(rows)
    if verified:
        rows = _verified(source, cases, more, warnings, force=force)
    written: Sequence[Mapping[str, object]] = rows
    if show_requests:
        written = _requests(source, rows, more, warnings)
    else:
        rows = _check(source, rows, out, more, warnings) if by_model else rows
        written = rows if asks or verified else windows
        if split:
            to_divide = rows if asks or verified else windows
            written = _in_parts(to_divide, read_split(split, source), more, warnings)
    write_list(out, written, force=force)
    summary = f"{len(written):,} {'questions' if asks or verified else 'clips'} in {out}"
    report: WindowClips = {
        "status": status_of(warnings),
        "recordings": len(recordings),
        "windows": {str(size): count_clips(of_size) for size, of_size in kept.items()},
        "left_out": sum(map(len, by_size.values())) - len(windows),
        **more,
        "file": str(out),
        "warnings": warnings,
    }
    return answer(report, summary, strict=strict)


def _verified(
    source: SourceData, cases_file: Path, more: _ByOption, warnings: list[str], *, force: bool
) -> list[Question]:
    rows, cases, without = evidence_rows(source)
    write_list(cases_file, cases, force=force)
    more |= {"verified": _by_type(rows), "rejected": len(cases) - len(rows), "cases": str(cases_file)}
    more["mean_iou"] = sum(case["iou"] for case in cases) / len(cases) if cases else None
    if without:
        warnings.append(f"no evidence is kept of {len(without)} recordings: {', '.join(without[:5])}")
    return rows


def _by_type(rows: list[Question]) -> dict[str, int]:
    return dict(sorted(Counter(row["qa_type"] for row in rows).items()))


def _in_parts(
    rows: Sequence[Question | StepsClip], split: Split, more: _ByOption, warnings: list[str]
) -> list[dict[str, object]]:
    """Add `split` to each row; leave out rows of recordings in no part."""
    part_of = {recording: part for part, recordings in split.items() for recording in recordings}
    kept = in_parts(rows, part_of, itemgetter("recording"), warnings)
    more["by_split"] = dict(sorted(Counter(part_of[row["recording"]] for row in kept).items()))
    return [{**row, "split": part_of[row["recording"]]} for row in kept]


def _allowed(source: SourceData, rows: list[Question], warnings: list[str]) -> list[Question]:
    allowed, lines = allowed_for_processing(source)
    warnings += lines
    return [row for row in rows if row["recording"] in allowed]


def _requests(
    source: SourceData, rows: list[Question], more: _ByOption, warnings: list[str]
) -> list[RequestToSend]:
    """Return the requests that would be sent, without the ratings: those contain the guesses."""
    to_send = _allowed(source, rows, warnings)
    guesses = {row["question_id"]: guess_prompt(row) for row in to_send}
    checks = {row["question_id"]: evidence_prompt(row) for row in to_send}
    requests = list_requests(require_server("questions"), guesses)
    requests += list_requests(require_server("judge"), checks)
    size = sum(request["bytes"] for request in requests)
    more["would_send"] = {"requests": len(requests), "bytes": size}
    return requests


def _check(
    source: SourceData, rows: list[Question], out: Path, more: _ByOption, warnings: list[str]
) -> list[Question]:
    """Have models check the rows that may be sent; return all rows."""
    writer, judge = require_server("questions"), require_server("judge")
    to_send = _allowed(source, rows, warnings)
    guesses = ask_server(writer, {row["question_id"]: guess_prompt(row) for row in to_send}, out, "guesses")
    usable = {  # guesses that can be shown to a judge
        name: text for name, text in guesses.texts.items() if text and 0 < len(text.strip()) <= MOST_TEXT
    }
    guessed = [row for row in to_send if row["question_id"] in usable]
    to_rate = {row["question_id"]: rating_prompt(row, usable[row["question_id"]]) for row in guessed}
    ratings = ask_server(judge, to_rate, out, "ratings")
    to_check = {row["question_id"]: evidence_prompt(row) for row in to_send}
    checks = ask_server(judge, to_check, out, "evidence checks")
    results: list[Question] = []
    for row in rows:
        name = row["question_id"]
        texts = [replies.texts.get(name) for replies in (guesses, ratings, checks)]
        results.append(checked(row, *texts) if name in checks.texts else row)
    refused = {
        "guesses": sum(text is not None for text in guesses.texts.values()) - len(usable),
        "ratings": _unparsed(results, "commonsense"),
        "evidence checks": _unparsed(results, "evidence"),
    }
    counts = {}
    for what, replies in (("guesses", guesses), ("ratings", ratings), ("evidence checks", checks)):
        counts[what.replace(" ", "_")] = replies.counts(refused[what])
        warnings += replies.warnings(what, refused[what])
    more["checks"] = counts
    more["dropped"] = dict(sorted(Counter(row["dropped"] for row in results if "dropped" in row).items()))
    return results


def _unparsed(rows: list[Question], check: Literal["commonsense", "evidence"]) -> int:
    """Count the replies to a check that hold no verdict."""
    checks = [row["checks"][check] for row in rows if "checks" in row]
    return sum(result["response"] is not None and result["value"] is None for result in checks)

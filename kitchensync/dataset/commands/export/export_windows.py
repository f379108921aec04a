"""`kitchensync export windows`: clips of some steps in a row, questions about objects in them, with evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from kitchensync.dataset.commands.export_source import (
    answer,
    check_kept_in_recordings,
    given,
    in_parts,
    read_split,
    source,
    write_list,
)
from kitchensync.dataset.commands.options import SEED, SHOW_REQUESTS, asked, named_server, shown
from kitchensync.shell.answer import Answer, answers
from kitchensync.storage.options.given_path import given_path
from kitchensync.storage.options.output_options import output_file
from kitchensync.storage.options.outputs import check_output

if TYPE_CHECKING:
    from kitchensync.dataset.examples.model_answers import RequestToSend
    from kitchensync.dataset.grounding.object_questions import Question
    from kitchensync.dataset.source.given_data import GivenData
    from kitchensync.dataset.tables.localization import Split
    from kitchensync.dataset.tables.step_rows import StepsClip


@click.command()
@source
@output_file("out", "--out", required=True, metavar="FILE.json", help="List to write.")
@click.option(
    "--sizes", default="2,3,4,5", show_default=True, help="How many steps a clip has, separated by commas."
)
@click.option(
    "--max-seconds", type=click.FloatRange(0, min_open=True), help="Leave out clips longer than this."
)
@click.option("--questions", "asks", is_flag=True, help="Write questions about objects in the clips instead.")
@click.option("--sample", "wanted", type=click.IntRange(1), help="Draw so many questions [default: all].")
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
    help="Write the questions whose evidence two people marked at the desk instead (own recordings).",
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
    wanted: int | None,
    seed: int,
    by_model: bool,
    show_requests: bool,
    verified: bool,
    split: Path | None,
) -> Answer:
    """Write clips of some steps in a row: id, recording, start, end, step_ids, nodes, texts, spans and more.

    Times are seconds of the film. Steps are taken in order of their start; a clip ends with the last end among its
    steps, and the next one begins one step later. `objects` are the ingredients and tools that the texts name.

    --questions asks about an object that two steps of a clip name, in the five forms of ProcObject-10K, with an
    answer from the texts. --model has the server of KITCHENSYNC_QUESTIONS_URL and _MODEL answer each without the
    film, that of KITCHENSYNC_JUDGE_URL and _MODEL rate it (1 to 5) and report whether the steps give the answer;
    keys as in `export promqa`. `dropped` says commonsense (4 or 5) or evidence; `checks` is all that was said.
    Only recordings whose participant agreed to third_party_processing are sent. The desk takes the list.

    --verified writes what two people marked: keys as published, evidence in seconds from the clip's start. What both
    marked of every question, also of those that do not hold, goes into FILE.cases.json for `measure spans`; where
    both say that the video does not tell, the overlap is 0.
    `reasoning` is multi-hop where the evidence is several moments; `iou` is how far both passes overlap; `about` are
    the steps that the evidence meets, which --model then has checked.

    \b
    Example:
      kitchensync export windows our-kitchens --sizes 2,3 --max-seconds 120 --out windows.json
    """
    from kitchensync.dataset.grounding.object_questions import drawn, questions
    from kitchensync.dataset.tables.step_rows import counted, past_the_film
    from kitchensync.dataset.tables.step_rows import windows as clips

    words = [word.strip() for word in sizes.split(",")]
    if not all(word.isdecimal() and 1 <= int(word) <= 1000 for word in words):
        raise click.BadParameter(f"{sizes!r}: not numbers of steps, such as 2,3", param_hint="--sizes")
    sizes_wanted = dict.fromkeys(map(int, words))
    if verified and asks:
        raise click.UsageError("--questions are not marked yet, --verified are; give one of them")
    if (by_model or show_requests) and not (asks or verified):
        raise click.UsageError("--model and --show-requests are for --questions or --verified")
    if wanted and not asks:
        raise click.UsageError("--sample is for --questions")
    cases = out.with_suffix(".cases.json")
    for file in (out, cases) if verified else (out,):
        check_output(file, force=force)  # before a model is asked: answers cost money
    found = given(paths)
    if verified:
        check_kept_in_recordings(found, "verified questions")
    recordings = found.by_recipe
    made = {size: [clip for one in recordings for clip in clips(one, size)] for size in sizes_wanted}
    limit = float("inf") if max_seconds is None else max_seconds
    kept = {size: [one for one in all_ if one["end"] - one["start"] <= limit] for size, all_ in made.items()}
    windows = [clip for clips_of_size in kept.values() for clip in clips_of_size]
    rows: list[Question] = []
    said: dict[str, Any] = {
        "recordings": len(recordings),
        "windows": {str(size): counted(found_clips) for size, found_clips in kept.items()},
        "left_out": sum(map(len, made.values())) - len(windows),
    }
    warnings = past_the_film(found.data) + found.warnings
    if asks:
        names = {one.recording_id: one.activity_name for one in recordings}
        rows = [row for clip in windows for row in questions(clip, names[clip["recording"]])]
        rows = drawn(rows, wanted, seed) if wanted else rows
        if wanted and len(rows) < wanted:
            warnings.append(
                f"only {len(rows)} of {wanted} questions can be drawn: of those with the same words in one "
                "recording one is taken; more recordings or other --sizes give more"
            )
        said |= {"candidates": _by_type(rows)}
    if verified:
        rows = _verified(found, cases, said, warnings, force=force)
    written: Sequence[Mapping[str, object]] = rows
    if show_requests:
        written = _show(found, rows, said, warnings)
    else:
        rows = _check(found, rows, out, said, warnings) if by_model else rows
        parts = read_split(split, found) if split else None
        if asks or verified:
            written = _in_parts(rows, parts, said, warnings) if parts else rows
        else:
            written = _in_parts(windows, parts, said, warnings) if parts else windows
    write_list(out, written, force=force)
    told = f"{len(written):,} {'questions' if asks or verified else 'clips'} in {out}"
    return answer({**said, "file": str(out)}, warnings, told, strict=strict)


def _verified(
    found: GivenData, cases_of: Path, said: dict[str, Any], warnings: list[str], *, force: bool
) -> list[Question]:
    from kitchensync.dataset.examples.opinion_rows import evidence_rows

    rows, cases, without = evidence_rows(found)
    write_list(cases_of, cases, force=force)
    said |= {"verified": _by_type(rows), "rejected": len(cases) - len(rows), "cases": str(cases_of)}
    said["mean_iou"] = sum(one["iou"] for one in cases) / len(cases) if cases else None
    if without:
        warnings.append(f"no evidence is kept of {len(without)} recordings: {', '.join(without[:5])}")
    return rows


def _by_type(rows: list[Question]) -> dict[str, int]:
    return dict(sorted(Counter(one["qa_type"] for one in rows).items()))


def _in_parts(
    rows: Sequence[Question | StepsClip], split: Split, said: dict[str, Any], warnings: list[str]
) -> list[dict[str, object]]:
    """Add its part to each row: no recording is in two. Those of recordings in no part are left out and counted."""
    part_of = {recording: part for part, recordings in split.items() for recording in recordings}
    inside = in_parts(rows, part_of, itemgetter("recording"), warnings)
    said["by_split"] = dict(sorted(Counter(part_of[row["recording"]] for row in inside).items()))
    return [{**row, "split": part_of[row["recording"]]} for row in inside]


def _sent(found: GivenData, rows: list[Question], warnings: list[str]) -> list[Question]:
    from kitchensync.dataset.source.consent_of_all import may_be_processed

    agreed, lines = may_be_processed(found)
    warnings += lines
    return [row for row in rows if row["recording"] in agreed]


def _show(
    found: GivenData, rows: list[Question], said: dict[str, Any], warnings: list[str]
) -> list[RequestToSend]:
    """Return what would be sent; the judge gets each guess too, which is not known before."""
    from kitchensync.dataset.grounding.object_questions import evidence_prompt, guess_prompt

    sent = _sent(found, rows, warnings)
    listed = shown(named_server("questions"), {row["question_id"]: guess_prompt(row) for row in sent})
    listed += shown(named_server("judge"), {row["question_id"]: evidence_prompt(row) for row in sent})
    said["would_send"] = {"requests": len(listed), "bytes": sum(one["bytes"] for one in listed)}
    return listed


def _check(
    found: GivenData, rows: list[Question], out: Path, said: dict[str, Any], warnings: list[str]
) -> list[Question]:
    """Return the rows with what models said of those that may be sent."""
    from kitchensync.dataset.grounding.object_questions import (
        MOST_TEXT,
        checked,
        evidence_prompt,
        guess_prompt,
        rating_prompt,
    )

    writer, judge = named_server("questions"), named_server("judge")
    sent = _sent(found, rows, warnings)
    guesses = asked(writer, {row["question_id"]: guess_prompt(row) for row in sent}, out, "guesses")
    read = {  # answers that can be shown to a judge
        name: text for name, text in guesses.texts.items() if text and 0 < len(text.strip()) <= MOST_TEXT
    }
    guessed = [row for row in sent if row["question_id"] in read]
    to_rate = {row["question_id"]: rating_prompt(row, read[row["question_id"]]) for row in guessed}
    ratings = asked(judge, to_rate, out, "ratings")
    told = asked(judge, {row["question_id"]: evidence_prompt(row) for row in sent}, out, "evidence checks")
    made: list[Question] = []
    for row in rows:
        name = row["question_id"]
        known = [replies.texts.get(name) for replies in (guesses, ratings, told)]
        made.append(checked(row, *known) if name in told.texts else row)
    refused = {
        "guesses": sum(text is not None for text in guesses.texts.values()) - len(read),
        "ratings": _unread(made, "commonsense"),
        "evidence checks": _unread(made, "evidence"),
    }
    said["checks"] = {}
    for what, replies in (("guesses", guesses), ("ratings", ratings), ("evidence checks", told)):
        said["checks"][what.replace(" ", "_")] = replies.counts(refused[what])
        warnings += replies.warnings(what, refused[what])
    said["dropped"] = dict(sorted(Counter(row["dropped"] for row in made if "dropped" in row).items()))
    return made


def _unread(rows: list[Question], check: Literal["commonsense", "evidence"]) -> int:
    said = [row["checks"][check] for row in rows if "checks" in row]
    return sum(one["response"] is not None and one["value"] is None for one in said)

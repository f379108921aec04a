"""`kitchensync export promqa`: questions about a recording whose video stops after a step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict

import click

from kitchensync.dataset.commands.export_source import (
    CORRECTED,
    ExportedList,
    answer,
    check_kept_in_recordings,
    missing_films,
    read_source,
    source_arguments,
    status_of,
    write_list,
)
from kitchensync.dataset.commands.options import (
    DRAW_SEED,
    SHOW_REQUESTS,
    ask_server,
    list_requests,
    require_server,
)
from kitchensync.dataset.examples.model_answers import AnswerCounts
from kitchensync.dataset.examples.opinion_rows import verified_rows
from kitchensync.dataset.examples.prefix_clips import HEIGHT, PrefixWish, write_prefixes
from kitchensync.dataset.films.review_film import facts_of, film_of
from kitchensync.dataset.promqa.assembly_records import assembly_record, is_of_assembly
from kitchensync.dataset.promqa.generation import SCHEMA, generated, prompt_of
from kitchensync.dataset.promqa.judge_agreement import JudgeAgreement
from kitchensync.dataset.promqa.published_examples import Comparison, compare, parse_examples
from kitchensync.dataset.promqa.questions import BEFORE_ALL, KINDS, PromqaExample, Targets, examples
from kitchensync.dataset.promqa.sampling import sample
from kitchensync.dataset.source.consent_of_all import allowed_for_processing
from kitchensync.dataset.source.source_data import SourceData
from kitchensync.shell.answer import Answer, answers
from kitchensync.shell.progress import Bar
from kitchensync.storage.options.given_path import given_path
from kitchensync.storage.options.output_options import output_file
from kitchensync.task_graphs.formats.graph_files import read_text
from kitchensync.task_graphs.formats.strict_json import Reader, load

FILM_KIND = "gopro_4k"
_MOST_BYTES = 64 << 20


class RequestSize(TypedDict):
    """Size of what would be sent."""

    host: str
    bytes: int


class _ByOption(TypedDict, total=False):
    against: Comparison
    "With --against."
    agreement: dict[str, JudgeAgreement]
    "With --verified: by kind of question."
    would_send: RequestSize
    "With --show-requests."
    generation: AnswerCounts
    "With --model."


class PromqaExamples(ExportedList, _ByOption):
    """The object `export-promqa/1`."""

    candidates: dict[str, int]
    "Kind of question: examples before --sample."
    next_empty: int
    "Questions `next` without an answer."
    missing_empty: int
    next_sum: int
    "Steps that are answers of questions `next`."
    missing_sum: int
    clip0_candidates: int
    "Questions before the first step."
    written: int


@click.command()
@source_arguments
@output_file("out", "--out", required=True, metavar="FILE.json", help="List to write.")
@click.option(
    "--available",
    type=given_path(exists=True, dir_okay=False),
    help=f"JSON, recording -> kinds of its files: take only recordings with {FILM_KIND} [default: all].",
)
@click.option("--kinds", help="Only these kinds, separated by commas: next, missing, order, preparation, ...")
@click.option(
    "--sample",
    "count",
    type=click.IntRange(1),
    help="Draw this many each of next and missing, an eighth as many of each other kind [default: all].",
)
@DRAW_SEED
@click.option(
    "--verified",
    is_flag=True,
    help="Take only questions that people verified at the desk, with their answers (own recordings).",
)
@click.option(
    "--form",
    type=click.Choice(("cooking", "assembly")),
    default="cooking",
    show_default=True,
    help="With --verified. assembly: only questions judged by the three criteria of ProMQA-Assembly, with its keys.",
)
@click.option(
    "--clips", is_flag=True, help="Write the video of each example, cut at its end, into FILE.clips."
)
@click.option(
    "--frames",
    is_flag=True,
    help="Write one frame a second of each video, and its last frame, into FILE.frames.",
)
@click.option(
    "--against",
    type=given_path(exists=True, dir_okay=False),
    help="Published examples (JSON): list which are reproduced and which are not, with the cause.",
)
@click.option(
    "--model",
    "by_model",
    is_flag=True,
    help="Have a model write questions with answers: texts of steps and errors leave this computer.",
)
@SHOW_REQUESTS
@CORRECTED
@answers("export-promqa/1")
def promqa(
    paths: tuple[Path, ...],
    strict: bool,
    out: Path,
    force: bool,
    available: Path | None,
    kinds: str | None,
    count: int | None,
    seed: int,
    verified: bool,
    form: str,
    clips: bool,
    frames: bool,
    against: Path | None,
    by_model: bool,
    show_requests: bool,
    corrected: bool,
) -> Answer[PromqaExamples]:
    """Write examples in the form of ProMQA: the video up to a step, and the question asked there.

    `next` asks which steps can come next, `missing` which were skipped, by the graph of the recipe; order,
    preparation, measurement, timing, technique and temperature ask what went wrong, if an annotator marked it.
    `step_id` is the node of the graph; a step whose text is not in the graph has none and gives a warning. Counts
    are of all candidates, before --sample. Clips are the beginning of the small video, frame by frame; without
    --sample there are many. A row then has clip, clip_frames, last_frame_s and frames.

    With --verified the answer has `agreement`, by kind over all judged questions: the share of pairs of judges who
    agree on a question and on an answer, and the share of valid verdicts. With --form assembly a recipe takes the
    place of a toy; questions before the first step or without an answer are left out.

    By the published rules a step that ends in the first five seconds is neither asked about nor history; this gives
    a warning, and --corrected keeps it as history.

    --model asks an OpenAI-compatible server: KITCHENSYNC_QUESTIONS_URL (base address), KITCHENSYNC_QUESTIONS_MODEL
    and, if it requires a key, KITCHENSYNC_QUESTIONS_KEY_FILE or KITCHENSYNC_QUESTIONS_KEY_ENV. Only recordings with
    consent to third_party_processing are sent, and no frame of a video. Each row keeps the full exchange
    (`generation`), and one of the three questions, drawn by the seed (`verification`), to be verified at the desk.
    Answers are also kept in FILE.answers.jsonl; a second run asks only what is missing.

    \b
    Example:
      kitchensync export promqa captaincook4d --available links.json --out examples.json
    """
    if form == "assembly" and not verified:
        raise click.UsageError("--form assembly is for verified questions; give --verified too")
    if verified and (by_model or show_requests):
        raise click.UsageError(
            "--verified questions are already written; leave out --model and --show-requests"
        )
    chosen, source = _kinds(kinds), read_source(paths)
    if verified:
        check_kept_in_recordings(source, "verified questions")
    films = _available(available) if available else None
    examples, warnings, recordings = _examples(source, films, corrected=corrected)
    examples = [example for example in examples if example["type"] in chosen]
    more: _ByOption = {}
    comparison = ""
    if against:
        more["against"], comparison = _compared(against, examples, chosen)
    if verified:
        # Imported only here: it loads PyAV.
        examples, agreement, without = verified_rows(source, examples)
        more["agreement"] = agreement
        warnings += [f"no questions of {recording} were verified" for recording in without]
    if form == "assembly":
        kept = [row for row in examples if is_of_assembly(row)]
        if left_out := len(examples) - len(kept):
            why = "judged by other criteria, without an answer, or before the first step"
            warnings.append(f"{left_out} questions are left out: {why}")
        examples = kept
    rows = examples
    if count is not None:
        # Several verified questions may come from one example: all of them are drawn together.
        by_example: dict[str, list[PromqaExample]] = {}
        for row in examples:
            by_example.setdefault(row["question_id"].partition("#")[0], []).append(row)
        drawn = sample([of_example[0] for of_example in by_example.values()], count, seed)
        rows = [row for first in drawn for row in by_example[first["question_id"].partition("#")[0]]]
    written: Sequence[Mapping[str, object]]
    warnings += _write_media(source, rows, out, clips, frames, force) if clips or frames else []
    if by_model or show_requests:
        written, counts_of_model, lines = _by_model(source, rows, out, seed, show_requests)
        more, warnings = {**more, **counts_of_model}, warnings + lines
    else:
        written = rows
    if form == "assembly":
        start_s = {
            r.recording_id: min((entry.start_s for entry in r.entries if entry.performed), default=0.0)
            for r in source.data.annotations.recordings
        }
        written = [assembly_record(row, start_s[row["recording_id"]]) for row in rows]
    write_list(out, written, force=force)
    following = [len(row["next_steps"]) for row in examples if row["type"] == "next"]
    missing = [len(row["missing_steps"]) for row in examples if row["type"] == "missing"]
    warnings += source.warnings
    report: PromqaExamples = {
        "status": status_of(warnings),
        "recordings": recordings,
        "candidates": dict(sorted(Counter(row["type"] for row in examples).items())),
        "next_empty": following.count(0),
        "missing_empty": missing.count(0),
        "next_sum": sum(following),
        "missing_sum": sum(missing),
        "clip0_candidates": sum(row["current_step"]["step_id"] == BEFORE_ALL for row in examples),
        "written": len(written),
        "file": str(out),
        **more,
        "warnings": warnings,
    }
    return answer(report, f"{len(written):,} examples in {out}{comparison}", strict=strict)


def _compared(path: Path, examples: list[PromqaExample], kinds: frozenset[str]) -> tuple[Comparison, str]:
    """Compare with the published examples in a file; return the result, and as text. Raises BadGraph."""
    published = parse_examples(read_text(path, most_bytes=_MOST_BYTES), path.name)
    result = compare([example for example in published if example["type"] in kinds], examples)
    total = result["equal"] + len(result["differences"])
    text = f"; {result['equal']} of {total} published examples are reproduced"
    for row in result["differences"]:
        text += f"\n  {row['question_id']}: {', '.join(row['differs'])} ({row['cause']})"
    return result, text


def _examples(
    source: SourceData, films: frozenset[str] | None, *, corrected: bool
) -> tuple[list[PromqaExample], list[str], int]:
    """Return the examples, warnings, and the number of recordings with a graph."""
    targets = {stem: Targets.of(graph) for stem, graph in source.graphs().items()}
    recordings = [r for r in source.data.annotations.recordings if films is None or r.recording_id in films]
    with_graph = [recording for recording in recordings if recording.graph_stem in targets]
    rows, unknown, vanished = [], [], 0
    for recording in with_graph:
        result = examples(recording, targets[recording.graph_stem], corrected=corrected)
        rows += result.rows
        unknown += [recording.recording_id] * result.unknown
        vanished += result.vanished
    without = sorted({recording.graph_stem for recording in recordings} - targets.keys())
    warnings = [f"no graph of {stem}: its recordings are left out" for stem in without]
    if unknown:
        warnings.append(
            f"{len(unknown)} steps have a text that is not in the graph: {', '.join(unknown[:5])}"
        )
    if vanished:
        warnings.append(
            f"{vanished} steps end in the first 5 s and are dropped, as published; --corrected keeps them as history"
        )
    return rows, warnings, len(with_graph)


def _by_model(
    source: SourceData, rows: list[PromqaExample], out: Path, seed: int, show: bool
) -> tuple[Sequence[Mapping[str, object]], _ByOption, list[str]]:
    """Return the rows with a model's questions, or the requests that would be sent; counts; warnings."""
    server = require_server("questions")
    allowed, lines = allowed_for_processing(source)
    prompts = {row["question_id"]: prompt_of(row) for row in rows if row["recording_id"] in allowed}
    if show:
        requests = list_requests(server, prompts, SCHEMA)
        size = sum(request["bytes"] for request in requests)
        return requests, {"would_send": {"host": server.host, "bytes": size}}, lines
    answers = ask_server(server, prompts, out, "questions", SCHEMA)
    results = [
        generated(row, prompts[name], answers.texts[name], server.model, seed)
        if (name := row["question_id"]) in prompts
        else row
        for row in rows
    ]
    refused = sum("refused" in row.get("generation", ()) for row in results)
    lines += answers.warnings("questions", refused)
    return results, {"generation": answers.counts(refused)}, lines


def _write_media(
    source: SourceData, rows: list[PromqaExample], out: Path, clips: bool, frames: bool, force: bool
) -> list[str]:
    """Write clips and frames beside the list; return warnings. Raises OutputRefused, UnreadableMedia."""

    def small_film(recording: Path) -> Path | None:
        return film_of(recording, HEIGHT) if facts_of(recording, HEIGHT) else None

    wish = PrefixWish(out, clips, frames, force, small_film)
    by_recording: dict[str, list[PromqaExample]] = {}
    for row in rows:
        by_recording.setdefault(row["recording_id"], []).append(row)
    absent = []
    with Bar(unit="films") as bar:
        for done, (recording, of_recording) in enumerate(by_recording.items()):
            bar.show(done, len(by_recording), recording)
            if not write_prefixes(source, recording, of_recording, wish):
                absent.append(recording)
    return missing_films(absent)


def _available(path: Path) -> frozenset[str]:
    """Return the recordings that have the camera's video. Raises BadGraph."""
    read = Reader(path.name)
    files = read.object(load(read_text(path, most_bytes=_MOST_BYTES), path.name), "")
    for recording, kinds in files.items():
        if not isinstance(kinds, list | dict):
            raise read.fail(recording, "neither a list of kinds nor links by kind")
    return frozenset(recording for recording, kinds in files.items() if FILM_KIND in kinds)


def _kinds(text: str | None) -> frozenset[str]:
    kinds = KINDS if text is None else [kind.strip() for kind in text.split(",")]
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        raise click.BadParameter(f"{unknown[0]!r}; there are {', '.join(KINDS)}", param_hint="--kinds")
    return frozenset(kinds)

"""`kitchensync export promqa`: examples of questions about a recording stopped after a step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kitchensync.dataset.commands.export_source import (
    CORRECTED,
    answer,
    check_kept_in_recordings,
    given,
    not_here,
    source,
    write_list,
)
from kitchensync.dataset.commands.options import DRAW_SEED, SHOW_REQUESTS, asked, named_server, shown
from kitchensync.shell.answer import Answer, answers
from kitchensync.shell.progress import Bar
from kitchensync.storage.options.given_path import given_path
from kitchensync.storage.options.output_options import output_file
from kitchensync.task_graphs.formats.graph_files import read_text
from kitchensync.task_graphs.formats.strict_json import Reader, load

if TYPE_CHECKING:
    from kitchensync.dataset.promqa.questions import PromqaExample
    from kitchensync.dataset.source.given_data import GivenData
FILM_KIND = "gopro_4k"
_MOST_BYTES = 64 << 20


@click.command()
@source
@output_file("out", "--out", required=True, metavar="FILE.json", help="List to write.")
@click.option(
    "--available",
    type=given_path(exists=True, dir_okay=False),
    help=f"JSON, recording -> kinds of its files: take only those with {FILM_KIND} [default: all].",
)
@click.option("--kinds", help="Only these kinds, separated by commas: next, missing, order, preparation, ...")
@click.option(
    "--sample",
    "wanted",
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
    "--clips", is_flag=True, help="Write the film of each example, stopped at its end, into FILE.clips."
)
@click.option(
    "--frames",
    is_flag=True,
    help="Write one picture a second of each film, the last one of it too, into FILE.frames.",
)
@click.option(
    "--against",
    type=given_path(exists=True, dir_okay=False),
    help="Published examples (JSON): list which come out again and which not, with the cause.",
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
    wanted: int | None,
    seed: int,
    verified: bool,
    form: str,
    clips: bool,
    frames: bool,
    against: Path | None,
    by_model: bool,
    show_requests: bool,
    corrected: bool,
) -> Answer:
    """Write examples in the form of ProMQA: the video up to a step, and the question asked there.

    `next` asks which steps can come next, `missing` which were passed over, by the graph of the recipe; order,
    preparation, measurement, timing, technique and temperature ask what went wrong, where an annotator said so.
    `step_id` is the node of the graph; one whose text the graph lacks has none and is warned of. Counts are of all
    candidates, before --sample. Clips are the beginning of the small film, picture for picture; they are many
    where nothing is sampled. A row then has clip, clip_frames, last_frame_s and frames.

    With --verified the answer has `agreement`, by kind over all questions that were judged: in which part of the
    pairs of judges both say the same of a question, of an answer, and how many found a question valid. With --form
    assembly a recipe takes the place of a toy; questions before the first step or without an answer are left out.

    By the published rules a step that ends in the first five seconds is neither asked about nor history; that is
    warned of, and --corrected keeps it as history.

    --model asks an OpenAI-compatible server: KITCHENSYNC_QUESTIONS_URL (base address), KITCHENSYNC_QUESTIONS_MODEL
    and, if it wants a key, KITCHENSYNC_QUESTIONS_KEY_FILE or KITCHENSYNC_QUESTIONS_KEY_ENV. Only recordings whose
    participant agreed to third_party_processing are asked about; no picture is sent. Each row keeps everything that
    was said (`generation`), and the one of three questions that the seed drew (`verification`), to be verified at
    the desk. The answers are in FILE.answers.jsonl too: run again, only what is missing is asked.

    \b
    Example:
      kitchensync export promqa captaincook4d --available links.json --out examples.json
    """
    from kitchensync.dataset.promqa.assembly_records import assembly_record, is_of_assembly
    from kitchensync.dataset.promqa.published_examples import compared, parse_examples
    from kitchensync.dataset.promqa.questions import BEFORE_ALL
    from kitchensync.dataset.promqa.sampling import sample

    if form == "assembly" and not verified:
        raise click.UsageError("--form assembly is of verified questions; give --verified too")
    if verified and (by_model or show_requests):
        raise click.UsageError(
            "--verified questions are written already; leave --model and --show-requests out"
        )
    chosen, found = _kinds(kinds), given(paths)
    if verified:
        check_kept_in_recordings(found, "verified questions")
    films = _available(available) if available else None
    made, warnings, recordings = _examples(found, films, corrected=corrected)
    made = [one for one in made if one["type"] in chosen]
    beside: dict[str, object] = {}
    compared_words = ""
    if against:
        published = parse_examples(read_text(against, most_bytes=_MOST_BYTES), against.name)
        result = compared([one for one in published if one["type"] in chosen], made)
        beside = {"against": result}
        others = result["differences"]
        lines = [f"\n  {one['question_id']}: {', '.join(one['differs'])} ({one['cause']})" for one in others]
        compared_words = (
            f"; {result['equal']} of {result['equal'] + len(others)} published ones come out again"
        )
        compared_words += "".join(lines)
    if verified:
        from kitchensync.dataset.examples.opinion_rows import verified_rows  # it knows of films

        made, agreement, without = verified_rows(found, made)
        beside |= {"agreement": agreement}
        warnings += [f"nobody verified questions of {recording}" for recording in without]
    if form == "assembly":
        kept = [row for row in made if is_of_assembly(row)]
        if left := len(made) - len(kept):
            why = "judged by other criteria, without an answer, or before the first step"
            warnings.append(f"{left} questions are left out: {why}")
        made = kept
    rows = made
    if wanted is not None:  # one that was verified comes with all its questions
        questions: dict[str, list[PromqaExample]] = {}
        for row in made:
            questions.setdefault(row["question_id"].partition("#")[0], []).append(row)
        drawn = sample([some[0] for some in questions.values()], wanted, seed)
        rows = [row for one in drawn for row in questions[one["question_id"].partition("#")[0]]]
    written: Sequence[Mapping[str, object]]
    warnings += _beside(found, rows, out, clips, frames, force) if clips or frames else []
    if by_model or show_requests:
        written, told, lines = _by_model(found, rows, out, seed, show_requests)
        beside, warnings = beside | told, warnings + lines
    else:
        written = rows
    if form == "assembly":
        start_s = {
            one.recording_id: min((entry.start_s for entry in one.entries if entry.performed), default=0.0)
            for one in found.data.annotations.recordings
        }
        written = [assembly_record(row, start_s[row["recording_id"]]) for row in rows]
    write_list(out, written, force=force)
    following = [len(one["next_steps"]) for one in made if one["type"] == "next"]
    missing = [len(one["missing_steps"]) for one in made if one["type"] == "missing"]
    counts = {
        "candidates": dict(sorted(Counter(one["type"] for one in made).items())),
        "next_empty": following.count(0),
        "missing_empty": missing.count(0),
        "next_sum": sum(following),
        "missing_sum": sum(missing),
        "clip0_candidates": sum(one["current_step"]["step_id"] == BEFORE_ALL for one in made),
    }
    said = {"recordings": recordings, **counts, "written": len(written), "file": str(out), **beside}
    words = f"{len(written):,} examples in {out}{compared_words}"
    return answer(said, warnings + found.warnings, words, strict=strict)


def _examples(
    found: GivenData, films: frozenset[str] | None, *, corrected: bool
) -> tuple[list[PromqaExample], list[str], int]:
    """Return the examples, a line for each thing that is not as it should be, and of how many recordings they are."""
    from kitchensync.dataset.promqa.questions import Targets, examples

    targets = {stem: Targets.of(graph) for stem, graph in found.graphs().items()}
    taken = [one for one in found.data.annotations.recordings if films is None or one.recording_id in films]
    known = [one for one in taken if one.graph_stem in targets]
    made, unknown, vanished = [], [], 0
    for one in known:
        found_here = examples(one, targets[one.graph_stem], corrected=corrected)
        made += found_here.rows
        unknown += [one.recording_id] * found_here.unknown
        vanished += found_here.vanished
    without = sorted({one.graph_stem for one in taken} - targets.keys())
    warnings = [f"no graph of {stem}: its recordings are left out" for stem in without]
    if unknown:
        warnings.append(f"{len(unknown)} steps have a text that the graph lacks: {', '.join(unknown[:5])}")
    if vanished:
        warnings.append(
            f"{vanished} steps end in the first 5 s and vanish, as published; --corrected keeps them as history"
        )
    return made, warnings, len(known)


def _by_model(
    found: GivenData, rows: list[PromqaExample], out: Path, seed: int, show: bool
) -> tuple[Sequence[Mapping[str, object]], dict[str, object], list[str]]:
    """Return the rows with what a model wrote, or what would be sent; counts; a line for each trouble."""
    from kitchensync.dataset.promqa.generation import SCHEMA, generated, prompt_of
    from kitchensync.dataset.source.consent_of_all import may_be_processed

    server = named_server("questions")
    agreed, lines = may_be_processed(found)
    prompts = {one["question_id"]: prompt_of(one) for one in rows if one["recording_id"] in agreed}
    if show:
        sent = shown(server, prompts, SCHEMA)
        return sent, {"would_send": {"host": server.host, "bytes": sum(one["bytes"] for one in sent)}}, lines
    answers = asked(server, prompts, out, "questions", SCHEMA)
    made = [
        generated(one, prompts[name], answers.texts[name], server.model, seed)
        if (name := one["question_id"]) in prompts
        else one
        for one in rows
    ]
    refused = sum("refused" in one.get("generation", ()) for one in made)
    lines += answers.warnings("questions", refused)
    return made, {"generation": answers.counts(refused)}, lines


def _beside(
    found: GivenData, rows: list[PromqaExample], out: Path, clips: bool, frames: bool, force: bool
) -> list[str]:
    """Write films and pictures beside the list; name the absent films. Raises OutputRefused, UnreadableMedia."""
    from kitchensync.dataset.examples.prefix_clips import HEIGHT, PrefixWish, write_prefixes
    from kitchensync.dataset.films.review_film import facts_of, film_of

    def small_film(recording: Path) -> Path | None:
        return film_of(recording, HEIGHT) if facts_of(recording, HEIGHT) else None

    wish = PrefixWish(out, clips, frames, force, small_film)
    by_recording: dict[str, list[PromqaExample]] = {}
    for row in rows:
        by_recording.setdefault(row["recording_id"], []).append(row)
    absent = []
    with Bar(unit="films") as bar:
        for done, (recording, ours) in enumerate(by_recording.items()):
            bar.show(done, len(by_recording), recording)
            if not write_prefixes(found, recording, ours, wish):
                absent.append(recording)
    return not_here(absent)


def _available(path: Path) -> frozenset[str]:
    """Return the recordings that have the camera's film. Raises BadGraph."""
    read = Reader(path.name)
    kinds = read.object(load(read_text(path, most_bytes=_MOST_BYTES), path.name), "")
    if wrong := next((one for one, found in kinds.items() if not isinstance(found, list | dict)), None):
        raise read.fail(wrong, "neither a list of kinds nor links by kind")
    return frozenset(one for one, found in kinds.items() if FILM_KIND in found)


def _kinds(text: str | None) -> frozenset[str]:
    from kitchensync.dataset.promqa.questions import KINDS

    words = KINDS if text is None else [word.strip() for word in text.split(",")]
    if unknown := [word for word in words if word not in KINDS]:
        raise click.BadParameter(f"{unknown[0]!r}; there are {', '.join(KINDS)}", param_hint="--kinds")
    return frozenset(words)

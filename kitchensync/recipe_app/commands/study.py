"""`kitchensync study`: plan who cooks what, where and when, and count what a study has reached."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypedDict

import click

from kitchensync.dataset.commands.options import SEED
from kitchensync.recipe_app.study import study_progress as progress
from kitchensync.recipe_app.study.already_cooked import cooked_below
from kitchensync.recipe_app.study.as_cooked import as_cooked
from kitchensync.recipe_app.study.make_plan import MadePlan, make_plan
from kitchensync.recipe_app.study.plan_file import LATE, graphs_of, read_locked, read_plan
from kitchensync.recipe_app.study.study_file import read_study
from kitchensync.recipe_app.study.study_progress import not_recorded
from kitchensync.recipe_app.study.wanted import Study
from kitchensync.shell.answer import Answer, answers
from kitchensync.storage.options.data_folder import data_option
from kitchensync.storage.options.given_path import given_path
from kitchensync.storage.options.output_options import output_file
from kitchensync.storage.options.outputs import write_output


class CountedSessions(TypedDict):
    """The object `study-coverage/1`."""

    by: list[str]
    rows: list[dict[str, str | int]]
    "The names of `by`, then sessions: wanted, planned, recorded, .., releasable, missing."
    left_out: dict[str, str]
    "Recording: why it does not count."


@click.group()
def study() -> None:
    """Plan a study: its goals, people, kitchens and hours in one file, its sessions in another.

    \b
    Example: kitchensync study plan study.toml --out plan.json --data recordings
    """


@study.command()
@click.argument("file", metavar="STUDY.toml", type=given_path(exists=True, dir_okay=False))
@output_file("out", "--out", required=True, metavar="PLAN.json", help="Plan to write.")
@click.option(
    "--keep",
    type=given_path(exists=True, dir_okay=False),
    metavar="PLAN.json",
    help="Earlier plan: its sessions with `locked` true stay as they are.",
)
@click.option(
    "--data",
    type=given_path(exists=True, file_okay=False),
    help="Folder of recordings, searched recursively: what was recorded counts, what was lost or withdrawn is "
    "planned again.",
)
@SEED
@answers("study-plan/1")
def plan(
    file: Path,
    out: Path,
    force: bool,
    keep: Path | None,
    data: Path | None,
    seed: int,
) -> Answer[MadePlan]:
    """Plan the sessions of a study: as many goals as fit without conflicts, and the reason for each that does not.

    \b
    Example:
      kitchensync study plan study.toml --out plan.json
    """
    study, recipes = read_study(file)
    study = replace(study, not_before=_now())
    counted, left_out = cooked_below(data) if data else ([], {})
    cooked = as_cooked(data, counted) if data else []
    locked = not_recorded(read_locked(keep), cooked) if keep else []
    lost = [session for session in locked if data and session.start <= _now() - LATE]
    kept = [session for session in locked if session not in lost]
    result = make_plan(study, graphs_of(study, recipes), cooked, kept, seed=seed)
    result["notes"] += [
        f"{session.person}'s session of {session.start.isoformat()} was not recorded: it is planned anew"
        for session in lost
    ]
    result |= {"left_out": left_out, "study": file.read_text(encoding="utf-8")}
    text = json.dumps({"schema": "study-plan/1", **result}, indent=1, ensure_ascii=False)
    write_output(out, f"{text}\n".encode(), force=force)
    return Answer(result, lambda shown: _show(shown, study, out))


@study.command("coverage")
@click.argument("file", metavar="STUDY.toml", type=given_path(exists=True, dir_okay=False))
@data_option("Folder of recordings, searched recursively.", kind=given_path(exists=True, file_okay=False))
@click.option(
    "--by",
    default="recipe,strategy",
    show_default=True,
    help="What makes a row: recipe, strategy, kitchen, person, display, part, separated by commas.",
)
@click.option(
    "--plan",
    "planned",
    type=given_path(exists=True, dir_okay=False),
    metavar="PLAN.json",
    help="Plan whose sessions to come count as planned.",
)
@output_file("table", "--csv", metavar="FILE.csv", help="Table to write.")
@answers("study-coverage/1")
def show_coverage(
    file: Path,
    data: Path,
    by: str,
    planned: Path | None,
    table: Path | None,
    force: bool,
) -> Answer[CountedSessions]:
    """Count the sessions of a study: wanted, planned, recorded, verified, aligned, annotated, consented, releasable.

    \b
    Example:
      kitchensync study coverage study.toml --data recordings --by recipe,strategy,part
    """
    names = [name.strip() for name in by.split(",")]
    if not names or not set(names) <= set(progress.DIMENSIONS):
        raise click.BadParameter(f"{by!r}: not some of {', '.join(progress.DIMENSIONS)}", param_hint="--by")
    study, now = read_study(file)[0], _now()
    cooked, left_out = cooked_below(data)
    coming = progress.to_come(read_plan(planned) if planned else [], cooked, now)
    rows = progress.coverage(study, cooked, coming, names).rows
    if table is not None:
        write_output(table, progress.as_csv(rows, names).encode(), force=force)
    answer: CountedSessions = {
        "by": names,
        "rows": [
            dict(zip(names, row, strict=True)) | {stage: getattr(counts, stage) for stage in progress.COLUMNS}
            for row, counts in rows.items()
        ],
        "left_out": left_out,
    }
    return Answer(answer, _show_coverage)


def _now() -> datetime:
    return datetime.now(UTC)


def _show_coverage(answer: CountedSessions) -> None:
    stages = [key for row in answer["rows"][:1] for key in row if key not in answer["by"]]
    wide = max((len(_row_name(row, answer["by"])) for row in answer["rows"]), default=0)
    click.echo(" " * wide + "".join(f"{stage:>12}" for stage in stages))
    for row in answer["rows"]:
        click.echo(
            f"{_row_name(row, answer['by']):{wide}}" + "".join(f"{row[stage]:>12}" for stage in stages)
        )
    for path, reason in answer["left_out"].items():
        click.echo(f"  does not count: {path}: {reason}")


def _row_name(row: dict[str, str | int], by: list[str]) -> str:
    return " · ".join(str(row[name]) for name in by if row[name])


def _show(result: MadePlan, study: Study, out: Path) -> None:
    goals = sum(goal.count for goal in study.goals)
    click.echo(
        f"{len(result['sessions'])} sessions in {out.name}; {result['recorded']} recorded; {goals} wanted"
    )
    for unmet in result["unmet"]:
        click.echo(f"  {unmet['missing']} missing: {unmet['goal']}: {unmet['reason']}")
    for path, reason in result["left_out"].items():
        click.echo(f"  does not count: {path}: {reason}")
    for note in result["notes"]:
        click.echo(f"  {note}")

"""`kitchensync study`: who cooks what, where and when, until a study has what it wants."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recipe_app.commands.options import SEED
from storage.shell.answer import Answer, answers
from storage.shell.given_path import given_path
from storage.shell.output_options import OutputPath, output_file
from storage.shell.outputs import check_output, write_output

if TYPE_CHECKING:
    from recipe_app.study.already_cooked import CookedRecording
    from recipe_app.study.plan_file import PlanEntry
    from recipe_app.study.wanted import OrdersLeft, Study


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
    help="Plan of before: its sessions with `locked` true stay as they are.",
)
@click.option(
    "--data",
    type=given_path(exists=True, file_okay=False),
    help="Folder of recordings, however deep: what was recorded counts, what was lost or withdrawn is planned anew.",
)
@click.option("--ics", type=OutputPath(), help="Calendar file to write.")
@click.option("--weeks", type=OutputPath(), help="Page to print, a table a week.")
@click.option(
    "--seconds",
    type=click.FloatRange(1, 3600),
    default=8.0,
    show_default=True,
    help="Time to look for the best plan; what was found until then is given.",
)
@SEED
@answers("study-plan/1")
def plan(
    file: Path,
    out: Path,
    force: bool,
    keep: Path | None,
    data: Path | None,
    ics: Path | None,
    weeks: Path | None,
    seconds: float,
    seed: int,
) -> Answer:
    """Plan the sessions of a study: as many goals as fit, nobody and nothing in two places, reasons for what is left.

    \b
    Example:
      kitchensync study plan study.toml --out plan.json --ics plan.ics --weeks plan.html
    """
    from recipe_app.study.already_cooked import cooked_below
    from recipe_app.study.calendar_file import calendar, weeks_page
    from recipe_app.study.plan_file import entries_of, graphs_of, read_locked, unmet
    from recipe_app.study.solve import plan_study
    from recipe_app.study.study_file import read_study

    for place in (ics, weeks):
        if place is not None:
            check_output(place, force=force)
    wanted, recipes = read_study(file)
    cooked, left_out = cooked_below(data) if data else ([], {})
    locked = read_locked(keep) if keep else []
    used = _used(cooked, locked)
    wanted = replace(
        wanted,
        settled=(*(one.session for one in cooked), *(one.settled for one in locked)),
        orders=_orders(graphs_of(wanted, recipes), used),
    )
    made = plan_study(wanted, limit_s=seconds)
    new = entries_of(made, wanted, recipes, used, seed=seed)
    entries = sorted([*locked, *new], key=lambda one: (one.start, one.kitchen))
    said = {
        "goals": [asdict(goal) for goal in wanted.goals],
        "sessions": [one.model_dump(mode="json") for one in entries],
        "unmet": unmet(made, wanted, entries),
        "proven": made.is_proven,
        "recorded": len(cooked),
        "left_out": left_out,
    }
    text = json.dumps({"schema": "study-plan/1", **said}, indent=1, ensure_ascii=False)
    write_output(out, f"{text}\n".encode(), force=force)
    if ics is not None:
        write_output(ics, calendar(entries).encode(), force=force)
    if weeks is not None:
        write_output(weeks, weeks_page(entries, wanted.zone, file.stem).encode(), force=force)
    return Answer(said, lambda found: _show(found, wanted, out))


@study.command("coverage")
@click.argument("file", metavar="STUDY.toml", type=given_path(exists=True, dir_okay=False))
@click.option(
    "--data",
    required=True,
    type=given_path(exists=True, file_okay=False),
    help="Folder of recordings, however deep.",
)
@click.option(
    "--by",
    default="recipe,strategy",
    show_default=True,
    help="What makes a row: recipe, strategy, kitchen, person, display, part, separated by commas.",
)
@output_file("table", "--csv", metavar="FILE.csv", help="Table to write.")
@click.option("--svg", type=OutputPath(), help="Picture to write: a bar for each row.")
@answers("study-coverage/1")
def show_coverage(
    file: Path, data: Path, by: str, table: Path | None, force: bool, svg: Path | None
) -> Answer:
    """Count what of a study is wanted, recorded, verified, aligned, annotated, consented to, and may be released.

    \b
    Example:
      kitchensync study coverage study.toml --data recordings --by recipe,strategy,part
    """
    from recipe_app.study.progress import DIMENSIONS, STAGES, as_csv, as_picture, coverage
    from recipe_app.study.study_file import read_study

    names = [name.strip() for name in by.split(",")]
    if not names or not set(names) <= set(DIMENSIONS):
        raise click.BadParameter(f"{by!r}: not some of {', '.join(DIMENSIONS)}", param_hint="--by")
    if svg is not None:
        check_output(svg, force=force)
    rows, left_out = coverage(read_study(file)[0], data, names)
    if table is not None:
        write_output(table, as_csv(rows, names).encode(), force=force)
    if svg is not None:
        write_output(svg, as_picture(rows).encode(), force=force)
    said = {
        "by": names,
        "rows": [
            dict(zip(names, row, strict=True)) | {stage: getattr(counts, stage) for stage in STAGES}
            for row, counts in rows.items()
        ],
        "left_out": left_out,
    }
    return Answer(said, _show_coverage)


def _show_coverage(said: dict[str, Any]) -> None:
    stages = [key for key in (said["rows"] or [{}])[0] if key not in said["by"]]
    wide = max((len(_row_name(row, said["by"])) for row in said["rows"]), default=0)
    click.echo(" " * wide + "".join(f"{stage:>12}" for stage in stages))
    for row in said["rows"]:
        click.echo(f"{_row_name(row, said['by']):{wide}}" + "".join(f"{row[stage]:>12}" for stage in stages))
    for path, reason in said["left_out"].items():
        click.echo(f"  does not count: {path}: {reason}")


def _row_name(row: dict[str, Any], by: list[str]) -> str:
    return " · ".join(row[name] for name in by if row[name])


def _used(cooked: list[CookedRecording], locked: list[PlanEntry]) -> dict[str, list[tuple[int, ...]]]:
    """Return the orders that recipes were cooked in, or will be."""
    used: dict[str, list[tuple[int, ...]]] = defaultdict(list)
    for one in cooked:
        if one.session.strategy == "normal":
            used[one.session.recipe].append(one.order)
    for entry in locked:
        if entry.strategy == "normal" and entry.order:
            used[entry.recipe].append(entry.order)
    return used


def _orders(graphs: dict[str, Any], used: dict[str, list[tuple[int, ...]]]) -> dict[str, OrdersLeft]:
    from recipe_app.errors import TooManyStates
    from recipe_app.graphs.order.orders import count_orders, is_valid_order
    from recipe_app.study.wanted import OrdersLeft

    found = {}
    for name, graph in graphs.items():
        try:
            total = count_orders(graph)
        except TooManyStates:
            continue
        valid = {order for order in used.get(name, ()) if is_valid_order(graph, order)}
        found[name] = OrdersLeft(total, total - len(valid))
    return found


def _show(said: dict[str, Any], wanted: Study, out: Path) -> None:
    goals = sum(goal.count for goal in wanted.goals)
    missing = sum(one["missing"] for one in said["unmet"])
    click.echo(f"{len(said['sessions'])} sessions in {out.name}; {said['recorded']} recorded; {goals} wanted")
    for one in said["unmet"]:
        click.echo(f"  {one['missing']} missing: {one['goal']}: {one['reason']}")
    for path, reason in said["left_out"].items():
        click.echo(f"  does not count: {path}: {reason}")
    if missing and not said["proven"]:
        click.echo("  no proof that more cannot be planned; --seconds gives it more time")

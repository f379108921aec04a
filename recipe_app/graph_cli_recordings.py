"""`kitchensync graph score`: recordings against their graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from recipe_app.graph_cli import as_json_option, attempt, show, table

COLUMNS = {
    "recordings": "recordings",
    "with errors": "recordings_is_error",
    "order violation": "recordings_order_violation",
    "hard": "recordings_hard_order_violation",
    "strict": "recordings_strict_violation",
    "order tag": "recordings_with_order_error",
    "late pairs": "late_pairs",
    "late edges": "late_edges",
    "unmet": "absent_predecessor_edges",
    "repeats": "repeat_entries",
}


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@as_json_option("the keys of an expected.json")
def score(folder: Path, as_json: bool) -> None:
    """Judge every annotated recording in FOLDER (CaptainCook4D layout) against its task graph.

    FOLDER holds task_graphs/ and annotation_json/. Prints orders, violations in all senses, how they agree with
    the annotators' tags, and what may come next or was skipped after every step.

    \b
    Example: kitchensync graph score captaincook4d --json
    """
    answer, left_out = attempt(
        lambda: score_answer(folder), schema="graph-score/1", about=folder, as_json=as_json
    )
    if left_out:
        click.echo(f"note: no task graph for: {', '.join(left_out)}; their recordings are left out", err=True)
    if as_json:
        show(answer)
    else:
        _print_score(answer)


def score_answer(folder: Path) -> tuple[dict[str, Any], list[str]]:
    """Return the numbers of a folder, and the recipes left out for want of a graph."""
    from recipe_app.graphs.formats.files import read_annotations, read_task_graphs
    from recipe_app.graphs.score import score, without_graph

    graphs, annotations = read_task_graphs(folder), read_annotations(folder)
    return score(graphs, annotations), without_graph(graphs, annotations)


def _print_score(answer: dict[str, Any]) -> None:
    rows = [
        [stem, answer["graphs"][stem]["topological_orders"], *(numbers[key] for key in COLUMNS.values())]
        for stem, numbers in answer["recipes"].items()
    ]
    totals = answer["totals"]
    if rows:
        rows.append(["all", totals["topological_orders"], *(totals[key] for key in COLUMNS.values())])
    table(["recipe", "orders", *COLUMNS], rows)
    click.echo()
    sides = ["both", "only_violation", "only_tag", "neither"]
    tags = [
        [question.replace("_", " "), *(n[side] for side in sides)] for question, n in answer["tags"].items()
    ]
    table(["violation against tag", *(side.replace("_", " ") for side in sides)], tags)
    click.echo()
    for name, found in answer["lists"].items():
        said = (one if isinstance(one, str) else f"{one[0]} step {one[1]}" for one in found)
        click.echo(f"{name.replace('_', ' ')}: {', '.join(said) or 'none'}")

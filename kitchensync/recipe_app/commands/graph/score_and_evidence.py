"""`kitchensync graph score` and `evidence`: recordings against their graphs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kitchensync.shell.answer import Answer, answers, show_table
from kitchensync.storage.options.given_path import given_path
from kitchensync.task_graphs.errors import NotFound
from kitchensync.task_graphs.formats.graph_files import read_annotations, read_task_graphs
from kitchensync.task_graphs.scoring.evidence import weigh_edges
from kitchensync.task_graphs.scoring.score import observations

if TYPE_CHECKING:
    from kitchensync.task_graphs.model import Graph
    from kitchensync.task_graphs.scoring.evidence import EdgeEvidence

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
@click.argument("folder", type=given_path(exists=True, file_okay=False))
@answers("graph-score/1", is_bare=True)
def score(folder: Path) -> Answer:
    """Score every annotated recording in FOLDER (CaptainCook4D layout) against its task graph.

    FOLDER holds task_graphs/ and annotation_json/. Prints orders, violations in all senses, how they agree with
    the annotators' tags, and what may come next or was skipped after every step.

    \b
    Example: kitchensync graph score captaincook4d --json
    """
    answer, notes = score_answer(folder)
    return Answer(answer, _print_score, [f"note: {folder.name}: {note}" for note in notes])


def score_answer(folder: Path) -> tuple[dict[str, Any], list[str]]:
    """Return the numbers of a folder, and what a reader must know of them."""
    from kitchensync.task_graphs.scoring.score import score, without_graph

    graphs, annotations = read_task_graphs(folder), read_annotations(folder)
    notes = []
    if left_out := without_graph(graphs, annotations):
        notes.append(f"no task graph for: {', '.join(left_out)}; their recordings are left out")
    if contrary := annotations.contradictions:
        notes.append(f"the two step files disagree on {', '.join(contrary)}; the error annotations count")
    return score(graphs, annotations), notes


def _print_score(answer: dict[str, Any]) -> None:
    rows = [
        [stem, answer["graphs"][stem]["topological_orders"], *(numbers[key] for key in COLUMNS.values())]
        for stem, numbers in answer["recipes"].items()
    ]
    totals = answer["totals"]
    if rows:
        rows.append(["all", totals["topological_orders"], *(totals[key] for key in COLUMNS.values())])
    show_table(["recipe", "orders", *COLUMNS], rows)
    click.echo()
    sides = ["both", "only_violation", "only_tag", "neither"]
    tags = [
        [question.replace("_", " "), *(n[side] for side in sides)] for question, n in answer["tags"].items()
    ]
    show_table(["violation against tag", *(side.replace("_", " ") for side in sides)], tags)
    click.echo()
    for name, entries in answer["lists"].items():
        texts = (entry if isinstance(entry, str) else f"{entry[0]} step {entry[1]}" for entry in entries)
        click.echo(f"{name.replace('_', ' ')}: {', '.join(texts) or 'none'}")


@click.command()
@click.argument("folder", type=given_path(exists=True, file_okay=False))
@click.option("--recipe", help="Only this recipe, for example coffee [default: all].")
@click.option("--challenged", is_flag=True, help="Only edges that recordings without errors broke.")
@answers("graph-evidence/1")
def evidence(folder: Path, recipe: str | None, challenged: bool) -> Answer:
    """Count for every edge how the recordings in FOLDER treated it: kept, overlapped, broken, first step missing.

    An edge that recordings without any error broke may ask for too much; it is marked and comes first.

    \b
    Example: kitchensync graph evidence captaincook4d --recipe tomatochutney
    """
    return Answer(evidence_answer(folder, recipe, challenged=challenged), _print_evidence)


def evidence_answer(folder: Path, recipe: str | None, *, challenged: bool) -> dict[str, Any]:
    """Build the `graph-evidence/1` object of a folder."""
    graphs, annotations = read_task_graphs(folder), read_annotations(folder)
    if recipe is not None and recipe not in graphs:
        raise NotFound(f"no recipe {recipe!r}; known are {', '.join(graphs)}")
    recipes = {}
    for stem, graph in graphs.items():
        if recipe in (None, stem):
            weighed = weigh_edges(*observations(graph, stem, annotations))
            recipes[stem] = [_edge(graph, edge) for edge in weighed if edge.is_challenged or not challenged]
    return {"schema": "graph-evidence/1", "recipes": recipes}


def _edge(graph: Graph, weighed: EdgeEvidence) -> dict[str, Any]:
    before, after = weighed.edge
    return {
        "edge": [before, after],
        "before": graph.numbered.by_node[before].text,
        "after": graph.numbered.by_node[after].text,
        "challenged": weighed.is_challenged,
        **{state: sorted(names) for state, names in weighed.recordings.items()},
        "without_first": sorted(weighed.without_first),
        "normal": len(weighed.normal),
        "broken_in_normal": sorted(weighed.broken_in_normal),
        "overlapped_in_normal": sorted(weighed.overlapped_in_normal),
    }


def _print_evidence(answer: dict[str, Any]) -> None:
    for stem, edges in answer["recipes"].items():
        click.echo(f"{stem}")
        rows: list[list[object]] = []
        for edge in edges:
            counts = [len(edge[state]) for state in ("kept", "overlapped", "late", "hard", "without_first")]
            challenged = f"{len(edge['broken_in_normal'])} of {edge['normal']}" if edge["challenged"] else ""
            label = f"  {edge['edge'][0]} -> {edge['edge'][1]}  {edge['before'][:30]} -> {edge['after'][:30]}"
            rows.append([label, *counts, challenged])
        show_table(
            ["  edge", "kept", "overlapped", "late", "hard", "without first", "broken, no error"], rows
        )
        click.echo()

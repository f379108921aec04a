"""`kitchensync graph score`: recordings against their graphs."""

from __future__ import annotations

from pathlib import Path

import click

from kitchensync.shell.answer import Answer, answers, show_table
from kitchensync.storage.options.given_path import given_path
from kitchensync.task_graphs.formats.graph_files import read_annotations, read_task_graphs
from kitchensync.task_graphs.scoring.score import FolderScores

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
def score(folder: Path) -> Answer[FolderScores]:
    """Score every annotated recording in FOLDER (CaptainCook4D layout) against its task graph.

    FOLDER holds task_graphs/ and annotation_json/. Prints orders, violations in all senses, how they agree with
    the annotators' tags, and what may come next or was skipped after every step.

    \b
    Example: kitchensync graph score captaincook4d --json
    """
    answer, notes = score_answer(folder)
    return Answer(answer, _print_score, [f"note: {folder.name}: {note}" for note in notes])


def score_answer(folder: Path) -> tuple[FolderScores, list[str]]:
    """Return the numbers of a folder, and what a reader must know of them."""
    from kitchensync.task_graphs.scoring.score import score, without_graph

    graphs, annotations = read_task_graphs(folder), read_annotations(folder)
    notes = []
    if left_out := without_graph(graphs, annotations):
        notes.append(f"no task graph for: {', '.join(left_out)}; their recordings are left out")
    if contrary := annotations.contradictions:
        notes.append(f"the two step files disagree on {', '.join(contrary)}; the error annotations count")
    return score(graphs, annotations), notes


def _print_score(answer: FolderScores) -> None:
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

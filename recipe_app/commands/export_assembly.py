"""`kitchensync export assembly`: questions about toys that are put together, from graphs and mistake files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recipe_app.commands.export_source import STRICT, answer, write_list
from storage.shell.answer import Answer, answers
from storage.shell.given_path import given_path
from storage.shell.output_options import output_file

if TYPE_CHECKING:
    from recipe_app.graphs.model import Graph

TOY = re.compile(r"(?:^|[_-])([a-z][0-9]{2}[a-z]?)(?=[_.-]|$)")
"""The toy in the name of a sequence, such as `nusar-2021_action_both_9012-a16_9012_user_id_2021-02-01_162904`."""


@click.command()
@click.argument("graphs", type=given_path(exists=True, dir_okay=False))
@click.argument("mistakes", type=given_path(exists=True, file_okay=False))
@output_file("out", "--out", required=True, metavar="FILE.json", help="List to write.")
@STRICT
@answers("export-assembly/1")
def assembly(graphs: Path, mistakes: Path, out: Path, force: bool, strict: bool) -> Answer:
    """Write a row for each moment after a step of an assembled toy, in the form of ProMQA-Assembly.

    GRAPHS is a file of ProMQA-Assembly's graphs, MISTAKES a folder of Assembly101's mistake files: one CSV a
    sequence, its name holds the toy. A row has toy, sequence, end (seconds), history (without what was taken apart),
    next, missing, candidates, w_screw (the step fastens with a screw), is_screwed (null: fine actions tell it) and
    irregular_lines of its file: these are counted, not guessed.

    \b
    Example:
      kitchensync export assembly graph/all.json annots --out assembly.json
    """
    from recipe_app.graphs.formats.assembly import parse_assembly
    from recipe_app.graphs.formats.graph_files import read_text

    toys = {
        graph.recipe.recipe: graph for graph in parse_assembly(read_text(graphs), name=graphs.name).graphs
    }
    rows, warnings, sequences = [], [], 0
    for path in sorted(mistakes.glob("*.csv")):
        toy = _toy(path.stem, toys)
        if toy is None:
            warnings.append(f"left out: {path.name}: no graph of its toy")
            continue
        found, irregular = _rows(path, toy, toys[toy])
        sequences += 1
        rows += [{**row, "irregular_lines": irregular} for row in found]
        warnings += [f"{path.name}: {irregular} irregular lines"] if irregular else []
    if not sequences:
        raise click.UsageError(f"{mistakes} has no CSV file of a toy in {graphs.name}")
    write_list(out, rows, force=force)
    said = {"sequences": sequences, "rows": len(rows), "file": str(out)}
    return answer(said, warnings, f"{len(rows):,} rows of {sequences} sequences in {out}", strict=strict)


def _rows(path: Path, toy: str, graph: Graph) -> tuple[list[dict[str, Any]], int]:
    from recipe_app.graphs.formats.graph_files import read_text
    from recipe_app.releases.promqa.assembly_rows import assembly_rows
    from recipe_app.releases.promqa.assembly_steps import parse_steps

    steps, irregular = parse_steps(read_text(path))
    return list(assembly_rows(toy, path.stem, steps, graph)), irregular


def _toy(stem: str, toys: dict[str, Graph]) -> str | None:
    return next((name for name in TOY.findall(stem) if name in toys), None)

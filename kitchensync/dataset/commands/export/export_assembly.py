"""`kitchensync export assembly`: questions about toys that are put together, from graphs and mistake files."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TypedDict

import click

from kitchensync.dataset.commands.export_source import STRICT, Assessed, answer, status_of, write_list
from kitchensync.dataset.commands.options import DRAW_SEED
from kitchensync.dataset.promqa.assembly_steps import (
    AssemblyRow,
    Span,
    assembly_rows,
    parse_steps,
    sample,
    screwing_spans,
)
from kitchensync.shell.answer import Answer, answers
from kitchensync.storage.options.given_path import given_path
from kitchensync.storage.options.output_options import output_file
from kitchensync.task_graphs.errors import BadGraph
from kitchensync.task_graphs.formats.assembly import parse_assembly
from kitchensync.task_graphs.formats.graph_files import read_text

_MOST_BYTES = 256 << 20
TOY = re.compile(r"(?:^|[_-])([a-z][0-9]{2}[a-z]?)(?=[_.-]|$)")
"""The toy in the name of a sequence, such as `nusar-2021_action_both_9012-a16_9012_user_id_2021-02-01_162904`."""


class _Sampled(TypedDict, total=False):
    kinds: dict[str, int]
    "With --sample: rows of each kind of question."


class AssemblyRows(Assessed, _Sampled):
    """The object `export-assembly/1`."""

    sequences: int
    moments: int
    "Moments after a step."
    rows: int
    irregular_lines: int
    "Malformed lines of the mistake files."
    file: str


@click.command()
@click.argument("graphs", type=given_path(exists=True, dir_okay=False))
@click.argument("mistakes", type=given_path(exists=True, file_okay=False))
@output_file("out", "--out", required=True, metavar="FILE.json", help="List to write.")
@click.option(
    "--fine",
    type=given_path(exists=True, dir_okay=False),
    help="Assembly101's fine actions (CSV with video, start_frame, end_frame, action_cls): fills is_screwed.",
)
@click.option(
    "--sample", "sampled", is_flag=True, help="Draw rows by kind of question [default: all moments]."
)
@DRAW_SEED
@STRICT
@answers("export-assembly/1")
def assembly(
    graphs: Path,
    mistakes: Path,
    out: Path,
    force: bool,
    fine: Path | None,
    sampled: bool,
    seed: int,
    strict: bool,
) -> Answer[AssemblyRows]:
    """Write a row for each moment after a step of an assembled toy, in the form of ProMQA-Assembly.

    GRAPHS is a file of ProMQA-Assembly's graphs, MISTAKES a folder of Assembly101's mistake files: one CSV per
    sequence, with the toy in its name. A row has toy, sequence, end (seconds), free_s (until the next step begins),
    history (without steps that were undone), current, label (correct, mistake, correction), next, missing,
    candidates (eight kinds), w_screw (the step fastens with a screw), is_screwed (null without --fine) and
    irregular_lines (malformed lines of its file). --sample draws at most two of a kind and sequence and 100 of a
    kind, mistakes of the last step first, and each row then has its kind.

    \b
    Example:
      kitchensync export assembly graph/all.json annots --out assembly.json
    """
    toys = {
        graph.recipe.recipe: graph for graph in parse_assembly(read_text(graphs), name=graphs.name).graphs
    }
    screwing = _screwing(fine) if fine else None
    rows: list[AssemblyRow] = []
    warnings, sequences, irregular_lines = list[str](), 0, 0
    for path in sorted(mistakes.glob("*.csv")):
        toy = next((name for name in TOY.findall(path.stem) if name in toys), None)
        if toy is None:
            warnings.append(f"left out: {path.name}: no graph of its toy")
            continue
        spans = None if screwing is None else screwing.get(path.stem, [])
        steps, irregular = parse_steps(read_text(path))
        sequences, irregular_lines = sequences + 1, irregular_lines + irregular
        for row in assembly_rows(toy, path.stem, steps, toys[toy], spans):
            row["irregular_lines"] = irregular
            rows.append(row)
        warnings += [f"{path.name}: {irregular} irregular lines"] if irregular else []
    if not sequences:
        raise click.UsageError(f"{mistakes} has no CSV file of a toy in {graphs.name}")
    moments = len(rows)
    rows = sample(rows, seed) if sampled else rows
    write_list(out, rows, force=force)
    kinds: _Sampled = {"kinds": dict(Counter(row["kind"] for row in rows))} if sampled else {}
    report: AssemblyRows = {
        "status": status_of(warnings),
        "sequences": sequences,
        "moments": moments,
        "rows": len(rows),
        "irregular_lines": irregular_lines,
        **kinds,
        "file": str(out),
        "warnings": warnings,
    }
    return answer(report, f"{len(rows):,} rows of {sequences} sequences in {out}", strict=strict)


def _screwing(path: Path) -> dict[str, list[Span]]:
    """Read the time spans in which something was screwed. Raises BadGraph."""
    try:
        return screwing_spans(read_text(path, most_bytes=_MOST_BYTES))
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise BadGraph(path.name, "", f"not a table of fine actions ({error})") from error

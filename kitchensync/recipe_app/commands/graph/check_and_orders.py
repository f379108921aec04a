"""`kitchensync graph check` and `orders`: one graph at a time."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TypedDict

import click

from kitchensync.dataset.commands.options import FILE, SEED
from kitchensync.shell.answer import Answer, answers
from kitchensync.storage.options.given_path import given_path
from kitchensync.task_graphs.errors import CyclicGraph, TooManyStates
from kitchensync.task_graphs.formats.graph_files import read_graph
from kitchensync.task_graphs.model import Graph
from kitchensync.task_graphs.order.closure import find_cycle, redundant_edges, relation
from kitchensync.task_graphs.order.diverse import Coverage, draw_diverse
from kitchensync.task_graphs.order.orders import Drawn, Orders, draw_orders
from kitchensync.task_graphs.scoring.score import read_recorded
from kitchensync.task_graphs.scoring.validate import Finding, check_graph

MOST_ORDERS = 100_000


class CheckedGraph(TypedDict):
    """The object `graph-check/1`."""

    file: str
    status: str
    "PASS; WARN with warnings; FAIL with errors."
    graph_hash: str
    nodes_with_start_end: int
    steps: int
    edges: int
    is_dag: bool
    redundant_edges: int | None
    topological_orders: int | None
    "Valid orders; None if they cannot be counted."
    down_sets: int | None
    "Sets of steps that may be done at one moment."
    findings: list[Finding]


class _Diverse(TypedDict, total=False):
    coverage: Coverage
    "With --diverse."
    recorded: int
    "Orders recorded already."


class DrawnOrders(_Diverse):
    """The object `orders/1`."""

    file: str
    graph_hash: str
    total: int | None
    "Valid orders; None if they cannot be counted."
    sampler: str
    "dp or huber."
    seed: int
    note: str
    orders: list[list[int]]
    "Nodes of each order."


@click.command()
@FILE
@answers("graph-check/1")
def check(file: Path) -> Answer[CheckedGraph]:
    """List errors and warnings about the task graph in FILE, and count the orders it allows.

    Exit code 1 when there is an error (a cycle, no START or END, an unreachable step).

    \b
    Example: kitchensync graph check kitchensync/examples/recipes/tea_and_toast.json
    """
    answer = check_answer(read_graph(file))
    errors = [
        f"{file.name}: {finding.place}: {finding.text}; {finding.fix}"
        for finding in answer["findings"]
        if finding.level == "error"
    ]
    return Answer(answer, _print_check, errors, failed=answer["status"] == "FAIL")


def check_answer(checked: Graph) -> CheckedGraph:
    """Build the `graph-check/1` object of a graph; `topological_orders` is None if it cannot be counted."""
    findings = check_graph(checked)
    levels = {finding.level for finding in findings}
    is_dag = find_cycle(checked) is None
    try:
        orders: Orders | None = Orders(relation(checked))
    except (CyclicGraph, TooManyStates):
        orders = None
    return {
        "file": checked.name,
        "status": "FAIL" if "error" in levels else "WARN" if "warning" in levels else "PASS",
        "graph_hash": checked.content_hash,
        "nodes_with_start_end": len(checked.nodes),
        "steps": len(checked.steps),
        "edges": len(checked.edges),
        "is_dag": is_dag,
        "redundant_edges": len(redundant_edges(checked)) if is_dag else None,
        "topological_orders": orders.total if orders else None,
        "down_sets": orders.down_sets if orders else None,
        "findings": findings,
    }


def _print_check(answer: CheckedGraph) -> None:
    orders = answer["topological_orders"]
    counted = f"{orders:,}" if orders is not None else "none" if not answer["is_dag"] else "too many to count"
    click.echo(f"{answer['status']}  {answer['file']}  {answer['graph_hash'][:12]}")
    click.echo(f"  {answer['steps']} steps, {answer['edges']} edges, valid orders: {counted}")
    for finding in answer["findings"]:
        if finding.level != "error":
            click.echo(f"  {finding.level:7} {finding.place}: {finding.text}; {finding.fix}")


@click.command()
@FILE
@click.option(
    "--count", type=click.IntRange(1, MOST_ORDERS), default=1, show_default=True, help="How many orders."
)
@click.option("--diverse", is_flag=True, help="Choose orders that show as much as possible together.")
@click.option(
    "--recorded",
    type=given_path(exists=True),
    help="Orders recorded already: an orders/1 file, a JSON list of orders, or a folder of annotations.",
)
@SEED
@answers("orders/1")
def orders(file: Path, count: int, diverse: bool, recorded: Path | None, seed: int) -> Answer[DrawnOrders]:
    """Draw different valid orders of the steps in FILE, every order equally likely.

    `sampler` names the method: `dp` counts all orders exactly and picks by rank; `huber` is a perfect sampler for
    graphs with too many sets of done steps to count (then `total` is null). --diverse covers both directions of
    free pairs and all successions; --recorded (implies it) counts what was recorded as seen and repeats none of it.

    \b
    Example: kitchensync graph orders kitchensync/examples/recipes/tea_and_toast.json --count 3 --seed 1 --json
    """
    read = read_graph(file)
    more: _Diverse = {}
    if diverse or recorded is not None:
        done = read_recorded(recorded, read) if recorded is not None else []
        chosen = draw_diverse(read, count=count, seed=seed, recorded=done)
        drawn = Drawn(chosen.total, chosen.sampler, chosen.orders, chosen.note)
        more = {"coverage": chosen.coverage, "recorded": len(done)}
    else:
        drawn = draw_orders(read, count=count, seed=seed)
    notes = [f"note: {file.name}: {drawn.note}"] if drawn.note else []
    return Answer(orders_answer(read, drawn, seed, more), partial(_print_orders, read), notes)


def orders_answer(read: Graph, drawn: Drawn, seed: int, more: _Diverse) -> DrawnOrders:
    """Build the `orders/1` object."""
    return {
        "file": read.name,
        "graph_hash": read.content_hash,
        "total": drawn.total,
        "sampler": drawn.sampler,
        "seed": seed,
        "note": drawn.note,
        "orders": [list(order) for order in drawn.orders],
        **more,
    }


def _print_orders(read: Graph, answer: DrawnOrders) -> None:
    total = f"{answer['total']:,}" if answer["total"] is not None else "more than could be counted"
    click.echo(f"{read.name}: {total} valid orders; {len(answer['orders'])} drawn by {answer['sampler']}")
    for number, order in enumerate(answer["orders"], start=1):
        click.echo(f"\norder {number}")
        for place, node in enumerate(order, start=1):
            click.echo(f"  {place:3}. [{node}] {read.by_node[node].text}")

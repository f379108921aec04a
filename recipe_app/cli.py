"""Commands of the recipe app: `kitchensync graph ...` and `kitchensync app`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from recipe_app.errors import RecipeError

if TYPE_CHECKING:
    from recipe_app.graphs.model import Graph
    from recipe_app.graphs.orders import Drawn

MOST_ORDERS = 100_000


def refuse(error: Exception) -> NoReturn:
    """End with one line on stderr and exit code 1."""
    click.echo(f"error: {error}", err=True)
    sys.exit(1)


@click.group()
def graph() -> None:
    """Check task graphs and draw valid orders of their steps.

    \b
    Example: kitchensync graph orders examples/recipes/tea_and_toast.json --count 3 --seed 1
    """


@graph.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object (graph-check/1).")
def check(file: Path, as_json: bool) -> None:
    """Say what is wrong or odd about the task graph in FILE, and how many orders it allows.

    Exit code 1 when there is an error (a cycle, no START or END, an unreachable step).

    \b
    Example: kitchensync graph check examples/recipes/tea_and_toast.json
    """
    from recipe_app.graphs.formats import read_graph

    try:
        answer = check_answer(read_graph(file))
    except RecipeError as error:
        if as_json:
            click.echo(
                json.dumps(
                    {"schema": "graph-check/1", "file": file.name, "status": "FAIL", "error": str(error)}
                )
            )
        refuse(error)
    if as_json:
        click.echo(json.dumps(answer, ensure_ascii=False))
    else:
        _print_check(answer)
    for finding in answer["findings"]:
        if finding["level"] == "error":
            click.echo(
                f"error: {file.name}: {finding['place']}: {finding['text']}; {finding['fix']}", err=True
            )
    sys.exit(1 if answer["status"] == "FAIL" else 0)


def check_answer(checked: Graph) -> dict[str, Any]:
    """Build the `graph-check/1` object of a graph; `topological_orders` is None where it is not countable."""
    from dataclasses import asdict

    from recipe_app.errors import CyclicGraph, TooManyStates
    from recipe_app.graphs.model import find_cycle, redundant_edges, relation
    from recipe_app.graphs.orders import Orders
    from recipe_app.graphs.validate import check_graph

    findings = check_graph(checked)
    levels = {finding.level for finding in findings}
    is_dag = find_cycle(checked) is None
    try:
        orders: Orders | None = Orders(relation(checked))
    except (CyclicGraph, TooManyStates):
        orders = None
    return {
        "schema": "graph-check/1",
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
        "findings": [asdict(finding) for finding in findings],
    }


def _print_check(answer: dict[str, Any]) -> None:
    orders = answer["topological_orders"]
    counted = f"{orders:,}" if orders is not None else "none" if not answer["is_dag"] else "too many to count"
    click.echo(f"{answer['status']}  {answer['file']}  {answer['graph_hash'][:12]}")
    click.echo(f"  {answer['steps']} steps, {answer['edges']} edges, valid orders: {counted}")
    for finding in answer["findings"]:
        if finding["level"] != "error":
            click.echo(f"  {finding['level']:7} {finding['place']}: {finding['text']}; {finding['fix']}")


@graph.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--count", type=click.IntRange(1, MOST_ORDERS), default=1, show_default=True, help="How many orders."
)
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same orders.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object (orders/1).")
def orders(file: Path, count: int, seed: int, as_json: bool) -> None:
    """Draw different valid orders of the steps in FILE, every order equally likely.

    `sampler` says how: `dp` counts all orders exactly and picks by rank; `huber` is a perfect sampler for
    graphs with too many sets of done steps to count (then `total` is null).

    \b
    Example: kitchensync graph orders examples/recipes/tea_and_toast.json --count 3 --seed 1 --json
    """
    from recipe_app.graphs.formats import read_graph
    from recipe_app.graphs.orders import draw_orders

    try:
        read = read_graph(file)
        drawn = draw_orders(read, count=count, seed=seed)
    except RecipeError as error:
        if as_json:
            click.echo(json.dumps({"schema": "orders/1", "file": file.name, "error": str(error)}))
        refuse(error)
    if as_json:
        click.echo(json.dumps(orders_answer(read, drawn, seed), ensure_ascii=False))
    else:
        _print_orders(read, drawn)
    if drawn.note:
        click.echo(f"note: {file.name}: {drawn.note}", err=True)


def orders_answer(read: Graph, drawn: Drawn, seed: int) -> dict[str, Any]:
    """Build the `orders/1` object."""
    return {
        "schema": "orders/1",
        "file": read.name,
        "graph_hash": read.content_hash,
        "total": drawn.total,
        "sampler": drawn.sampler,
        "seed": seed,
        "note": drawn.note,
        "orders": [list(order) for order in drawn.orders],
    }


def _print_orders(read: Graph, drawn: Drawn) -> None:
    total = f"{drawn.total:,}" if drawn.total is not None else "more than could be counted"
    click.echo(f"{read.name}: {total} valid orders; {len(drawn.orders)} drawn by {drawn.sampler}")
    for number, order in enumerate(drawn.orders, start=1):
        click.echo(f"\norder {number}")
        for place, node in enumerate(order, start=1):
            click.echo(f"  {place:3}. [{node}] {read.by_node[node].text}")


@click.command()
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="Folder of the recordings [default: recordings, made if absent].",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to serve on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0 takes a free one."
)
@click.option(
    "--recipes", type=click.Path(path_type=Path), help="Folder of task-graph files [default: our own]."
)
@click.option(
    "--token",
    is_flag=False,
    flag_value="",
    envvar="KITCHENSYNC_APP_TOKEN",
    help="Let only those in who have this token; without a value one is made and printed with the address.",
)
@click.option(
    "--demo", is_flag=True, help="Try it: our own recipes and a data folder that is removed at the end."
)
def app(data: Path | None, host: str, port: int, recipes: Path | None, token: str | None, demo: bool) -> None:
    """Serve the tablet's pages: choose a recipe and an order, follow its steps, log errors.

    Steps and errors go into the events of the chosen recording under --data, or of a session without any device.
    Prints `ready app=ADDRESS` once the address accepts; Ctrl-C ends it.

    \b
    Example: kitchensync app --data recordings --port 8000
    Example: kitchensync app --data recordings --host 0.0.0.0 --token
    """
    from recipe_app.serve import Setup, serve

    try:
        serve(Setup(data=data, host=host, port=port, recipes=recipes, token=token, demo=demo), say=click.echo)
    except RecipeError as error:
        refuse(error)

"""Graphs of one recipe that people draw independently: their agreement, differences to rule on, final edges.

An answer is an edge, or that a step fastens with a screw (asked by ProMQA-Assembly).

The operations belong to one version of the recipe, by its hash: a new version is drawn again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import combinations
from typing import Any, TypeVar

from kitchensync.operations.errors import BadOperation, NotNow
from kitchensync.operations.session_state import Op
from kitchensync.recipe_app.review.rounds import Review
from kitchensync.task_graphs.errors import BadGraph
from kitchensync.task_graphs.formats.assembly import ticks, with_ticks
from kitchensync.task_graphs.model import Edge, Graph
from kitchensync.task_graphs.order.agreement import agree
from kitchensync.task_graphs.order.closure import find_cycle
from kitchensync.task_graphs.order.edit import with_inner_edges

GRAPHS = Review("graphs", "draw_graph", "submit_graph")
RULED, RULED_FASTENING, ACCEPTED = "rule_edge", "rule_fastening", "accept_graph"
"""Kinds of the log: rulings on an edge and on a fastening step; the accepted graph with the agreement."""
MEASURES = ("raw", "raw_with_ends", "reduced", "closure")
Edges = frozenset[Edge]
Answer = TypeVar("Answer", Edge, int)


def drawn(ops: Iterable[Op], person: str) -> Edges:
    """Return the edges that a person drew last."""
    return frozenset((u, v) for u, v in _last_edit(ops, person).get("edges", ()))


def fastened(ops: Iterable[Op], person: str) -> frozenset[int]:
    """Return the steps that a person last marked as fastening with a screw."""
    return frozenset(_last_edit(ops, person).get("fastened", ()))


def _last_edit(ops: Iterable[Op], person: str) -> dict[str, Any]:
    edits = [op["body"] for op in ops if op["kind"] == GRAPHS.edited and op["actor"] == person]
    return edits[-1] if edits else {}


def graph_with(recipe: Graph, edges: Iterable[Edge], fastening: Collection[int] = ()) -> Graph:
    """Return a recipe with only these edges and fastening steps.

    Raises BadGraph for an unknown step, BadOperation for a cycle.
    """
    graph = with_inner_edges(with_inner_edges(recipe, ()), edges)
    if find_cycle(graph):
        raise BadOperation("these edges run in a circle: take one of them away")
    if strange := sorted(set(fastening) - {step.node for step in graph.steps}):
        raise BadGraph(graph.name, f"step {strange[0]}", "there is no such step; load the page again")
    return with_ticks(graph, fastening) if fastening or any(ticks(graph).values()) else graph


def agreement_of_graphs(recipe: Graph, people: Sequence[Edges]) -> dict[str, dict[str, float]]:
    """Return precision, recall and F1 by measure, the mean over pairs of people, the earlier as the reference."""
    pairs = [
        asdict(agree(graph_with(recipe, first), graph_with(recipe, second)))
        for first, second in combinations(people, 2)
    ]
    return {
        name: {key: sum(pair[name][key] for pair in pairs) / len(pairs) for key in pairs[0][name]}
        for name in MEASURES
    }


def agreement_of_fastening(recipe: Graph, people: Sequence[frozenset[int]]) -> float | None:
    """Return the share of steps marked alike, the mean over pairs of people; None if no step is marked."""
    if not any(people):
        return None
    pairs = [len(first ^ second) for first, second in combinations(people, 2)]
    return 1 - sum(pairs) / len(pairs) / len(recipe.steps)


def rulings(ops: Iterable[Op]) -> dict[Edge | int, bool]:
    """Return the last ruling on each edge and on each step that may fasten."""
    bodies = [op["body"] for op in ops if op["kind"] in (RULED, RULED_FASTENING)]
    return {
        body["step"] if "step" in body else (body["edge"][0], body["edge"][1]): body["holds"]
        for body in bodies
    }


def differing(people: Sequence[frozenset[Answer]]) -> list[Answer]:
    """Return the answers that some gave and others did not."""
    return sorted(frozenset.union(*people) - frozenset.intersection(*people))


def holding(people: Sequence[frozenset[Answer]], ruled: Mapping[Edge | int, bool]) -> list[Answer]:
    """Return the answers that everybody gave or that a ruling confirms. Raises NotNow if rulings are missing."""
    disputed = differing(people)
    if remaining := sum(edge not in ruled for edge in disputed):
        raise NotNow("{count} answers differ and were not ruled on yet", count=remaining)
    return sorted(frozenset.intersection(*people) | {edge for edge in disputed if ruled[edge]})

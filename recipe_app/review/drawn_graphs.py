"""Graphs of one recipe that people draw alone: how they agree, which edges are to rule on, what holds.

The operations are those about one version of the recipe, by its hash: a new version is drawn anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import combinations
from typing import Any

from kitchensync.dataset.errors import BadOperation, NotNow
from kitchensync.recipe_app.review.rounds import Review
from kitchensync.task_graphs.model import Edge, Graph
from kitchensync.task_graphs.order.agreement import agree
from kitchensync.task_graphs.order.closure import find_cycle
from kitchensync.task_graphs.order.edit import with_inner_edges

GRAPHS = Review("graphs", "draw_graph", "submit_graph")
RULED, ACCEPTED = "rule_edge", "accept_graph"
"""Kinds of the log: whether an edge holds on which people differ; what became the recipe, and how people agreed."""
MEASURES = ("raw", "raw_with_ends", "reduced", "closure")
Edges = frozenset[Edge]


def drawn(ops: Iterable[dict[str, Any]], person: str) -> Edges:
    """Return the edges that a person drew last."""
    said = [op["body"]["edges"] for op in ops if op["kind"] == GRAPHS.edited and op["actor"] == person]
    return frozenset((u, v) for u, v in said[-1]) if said else frozenset()


def graph_with(recipe: Graph, edges: Iterable[Edge]) -> Graph:
    """Return a recipe with these edges alone. Raises BadGraph for a strange step, BadOperation for a circle."""
    graph = with_inner_edges(with_inner_edges(recipe, ()), edges)
    if find_cycle(graph):
        raise BadOperation("these edges run in a circle: take one of them away")
    return graph


def agreement_of_graphs(recipe: Graph, people: Sequence[Edges]) -> dict[str, dict[str, float]]:
    """Return precision, recall and F1 in each form, the mean over pairs of people (the earlier one first)."""
    pairs = [
        asdict(agree(graph_with(recipe, one), graph_with(recipe, other)))
        for one, other in combinations(people, 2)
    ]
    return {
        name: {key: sum(pair[name][key] for pair in pairs) / len(pairs) for key in pairs[0][name]}
        for name in MEASURES
    }


def rulings(ops: Iterable[dict[str, Any]]) -> dict[Edge, bool]:
    """Return what was ruled last of each edge."""
    said = (op["body"] for op in ops if op["kind"] == RULED)
    return {(one["edge"][0], one["edge"][1]): one["holds"] for one in said}


def differing(people: Sequence[Edges]) -> list[Edge]:
    """Return the edges that some drew and others did not."""
    return sorted(frozenset.union(*people) - frozenset.intersection(*people))


def holding(people: Sequence[Edges], ruled: Mapping[Edge, bool]) -> list[Edge]:
    """Return the edges that everybody drew or that were ruled to hold. Raises NotNow while some are to rule on."""
    disputed = differing(people)
    if left := sum(edge not in ruled for edge in disputed):
        raise NotNow("{count} answers differ and were not ruled on yet", count=left)
    return sorted(frozenset.intersection(*people) | {edge for edge in disputed if ruled[edge]})

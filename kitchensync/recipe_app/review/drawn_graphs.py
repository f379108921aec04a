"""Graphs of one recipe that people draw alone: how they agree, which answers are to rule on, what holds.

An answer is an edge, or that a step fastens with a screw (asked by ProMQA-Assembly).

The operations are those about one version of the recipe, by its hash: a new version is drawn anew.
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
"""Kinds of the log: whether an edge holds, or a step fastens, on which people differ; what became the recipe, and how
people agreed."""
MEASURES = ("raw", "raw_with_ends", "reduced", "closure")
Edges = frozenset[Edge]
Answer = TypeVar("Answer", Edge, int)


def drawn(ops: Iterable[Op], person: str) -> Edges:
    """Return the edges that a person drew last."""
    return frozenset((u, v) for u, v in _said_last(ops, person).get("edges", ()))


def fastened(ops: Iterable[Op], person: str) -> frozenset[int]:
    """Return the steps that a person said last to fasten with a screw."""
    return frozenset(_said_last(ops, person).get("fastened", ()))


def _said_last(ops: Iterable[Op], person: str) -> dict[str, Any]:
    said = [op["body"] for op in ops if op["kind"] == GRAPHS.edited and op["actor"] == person]
    return said[-1] if said else {}


def graph_with(recipe: Graph, edges: Iterable[Edge], fastening: Collection[int] = ()) -> Graph:
    """Return a recipe with these edges and fastening steps alone.

    Raises BadGraph for a strange step, BadOperation for a circle.
    """
    graph = with_inner_edges(with_inner_edges(recipe, ()), edges)
    if find_cycle(graph):
        raise BadOperation("these edges run in a circle: take one of them away")
    if strange := sorted(set(fastening) - {step.node for step in graph.steps}):
        raise BadGraph(graph.name, f"step {strange[0]}", "there is no such step; load the page again")
    return with_ticks(graph, fastening) if fastening or any(ticks(graph).values()) else graph


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


def agreement_of_fastening(recipe: Graph, people: Sequence[frozenset[int]]) -> float | None:
    """Return the share of steps marked alike, the mean over pairs of people; None where nobody marked any."""
    if not any(people):
        return None
    pairs = [len(one ^ other) for one, other in combinations(people, 2)]
    return 1 - sum(pairs) / len(pairs) / len(recipe.steps)


def rulings(ops: Iterable[Op]) -> dict[Edge | int, bool]:
    """Return what was ruled last of each edge and of each step that may fasten."""
    said = [op["body"] for op in ops if op["kind"] in (RULED, RULED_FASTENING)]
    return {one["step"] if "step" in one else (one["edge"][0], one["edge"][1]): one["holds"] for one in said}


def differing(people: Sequence[frozenset[Answer]]) -> list[Answer]:
    """Return the answers that some gave and others did not."""
    return sorted(frozenset.union(*people) - frozenset.intersection(*people))


def holding(people: Sequence[frozenset[Answer]], ruled: Mapping[Edge | int, bool]) -> list[Answer]:
    """Return the answers that everybody gave or that were ruled to hold. Raises NotNow while some are to rule on."""
    disputed = differing(people)
    if left := sum(edge not in ruled for edge in disputed):
        raise NotNow("{count} answers differ and were not ruled on yet", count=left)
    return sorted(frozenset.intersection(*people) | {edge for edge in disputed if ruled[edge]})

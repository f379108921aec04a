"""Agreement of two annotators' graphs of one recipe.

Edges are compared in three forms, because an edge that others imply changes nothing: *raw* as drawn, *reduced*, and
the whole *closure*, which defines the allowed orders. *Cross* is the share of each graph's reduced edges that are in
the closure of the other. The overlap of the two sets of valid orders is exact: orders that are valid in both graphs
are the orders of the union of the edges.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from kitchensync.task_graphs.errors import CyclicGraph, NotComparable, TooManyStates
from kitchensync.task_graphs.model import Edge, Graph
from kitchensync.task_graphs.order.closure import covers, pairs_of, relation
from kitchensync.task_graphs.order.orders import STATE_BUDGET, count_orders


@dataclass(frozen=True, slots=True)
class EdgeAgreement:
    """Precision = share of the first graph's edges that the second has, recall the reverse, F1 the harmonic mean."""

    precision: float
    recall: float
    f1: float


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of two graphs; START and END edges are left out except in `raw_with_ends`.

    `order_overlap` is |orders valid in both| / |orders valid in at least one|, None if they cannot be counted.
    """

    raw: EdgeAgreement
    raw_with_ends: EdgeAgreement
    reduced: EdgeAgreement
    closure: EdgeAgreement
    cross: EdgeAgreement
    order_overlap: float | None
    only_first: tuple[Edge, ...]
    only_second: tuple[Edge, ...]


def agree(first: Graph, second: Graph) -> Agreement:
    """Compare two graphs over the same steps. Raises NotComparable, CyclicGraph."""
    labels = [{step.node: step.label for step in graph.nodes} for graph in (first, second)]
    if labels[0] != labels[1]:
        different = sorted(dict(labels[0].items() ^ labels[1].items()))
        raise NotComparable(first.name, second.name, f"step {different[0]}")
    orders = relation(first), relation(second)
    reduced = set(covers(orders[0])), set(covers(orders[1]))
    closed = set(pairs_of(orders[0])), set(pairs_of(orders[1]))
    return Agreement(
        raw=compare(first.inner_edges, second.inner_edges),
        raw_with_ends=compare(first.edges, second.edges),
        reduced=compare(*reduced),
        closure=compare(*closed),
        cross=_agreement(_share(reduced[0], closed[1]), _share(reduced[1], closed[0])),
        order_overlap=_order_overlap(first, second),
        only_first=tuple(sorted(reduced[0] - closed[1])),
        only_second=tuple(sorted(reduced[1] - closed[0])),
    )


def compare(first: Collection[Edge], second: Collection[Edge]) -> EdgeAgreement:
    """Compare two edge sets: 1 if both are empty, 0 if only one is."""
    return _agreement(_share(first, second), _share(second, first))


def _share(edges: Collection[Edge], others: Collection[Edge]) -> float:
    edges, others = set(edges), set(others)
    if not edges:
        return 0.0 if others else 1.0
    return len(edges & others) / len(edges)


def _agreement(precision: float, recall: float) -> EdgeAgreement:
    total = precision + recall
    return EdgeAgreement(precision, recall, 2 * precision * recall / total if total else 0.0)


def _order_overlap(first: Graph, second: Graph, *, budget: int = STATE_BUDGET) -> float | None:
    try:
        counts = [count_orders(graph, budget=budget) for graph in (first, second)]
        try:
            both = count_orders(replace(first, edges=first.edges + second.edges), budget=budget)
        except CyclicGraph:  # the graphs contradict each other: no order is valid in both
            both = 0
    except TooManyStates:
        return None
    return both / (counts[0] + counts[1] - both)

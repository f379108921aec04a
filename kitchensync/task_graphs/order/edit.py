"""Edit the edges of a graph, and report their effects: cycles, redundant edges, orders."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from kitchensync.task_graphs.errors import BadGraph, TooManyOrders, TooManyStates
from kitchensync.task_graphs.model import Edge, Graph
from kitchensync.task_graphs.order.closure import find_cycle, redundant_edges
from kitchensync.task_graphs.order.diverse import draw_diverse
from kitchensync.task_graphs.order.orders import Order, count_orders, draw_orders

SAMPLES = 3


def with_inner_edges(graph: Graph, inner_edges: Iterable[Edge]) -> Graph:
    """Return the graph with exactly these edges between steps; edges that stay keep their places.

    Steps without predecessors get an edge from START and those without successors an edge to END; edges of START and
    END that a new edge implies are removed. Raises BadGraph for an unknown step.
    """
    old_edges, inner = set(graph.inner_edges), set(inner_edges)
    steps = {step.node for step in graph.steps}
    if unknown := sorted({node for edge in inner for node in edge} - steps):
        raise BadGraph(graph.name, f"step {unknown[0]}", "there is no such step; load the page again")
    if inner == old_edges:
        return graph
    new = inner - old_edges
    has_before, has_after = {after for _, after in new}, {before for before, _ in new}
    kept = [
        (u, v)
        for u, v in graph.edges
        if ((u, v) not in old_edges or (u, v) in inner)
        and not (u == graph.start and v in has_before)
        and not (v == graph.end and u in has_after)
    ]
    edges = (*kept, *sorted(new), *_missing_end_edges(graph, {*kept, *new}))
    links = (link for link in (*graph.links, *graph.suggested) if link.edge in edges)
    suggested = tuple(link for link in graph.suggested if link.edge not in inner)
    return replace(graph, edges=edges, links=tuple(links), suggested=suggested)


def _missing_end_edges(graph: Graph, edges: set[Edge]) -> list[Edge]:
    has_before, has_after = {after for _, after in edges}, {before for before, _ in edges}
    first = [(graph.start, step.node) for step in graph.steps if step.node not in has_before]
    last = [(step.node, graph.end) for step in graph.steps if step.node not in has_after]
    return [(u, v) for u, v in (*first, *last) if u is not None and v is not None]


@dataclass(frozen=True, slots=True)
class OrderFacts:
    """A cycle, or the redundant edges, number of orders and sample orders; `total` is None if it is not counted."""

    cycle: tuple[int, ...]
    redundant: tuple[Edge, ...]
    total: int | None
    orders: tuple[Order, ...]


def order_facts(graph: Graph) -> OrderFacts:
    """Return a cycle of a graph, or its redundant edges, its number of orders, and some sample orders."""
    if cycle := find_cycle(graph):
        return OrderFacts(tuple(cycle), (), None, ())
    inner = set(graph.inner_edges)
    redundant = tuple(edge for edge in redundant_edges(graph) if edge in inner)
    try:
        total = count_orders(graph)
        return OrderFacts((), redundant, total, draw_diverse(graph, count=SAMPLES, seed=1).orders)
    except TooManyStates:
        pass
    try:
        return OrderFacts((), redundant, None, draw_orders(graph, count=SAMPLES, seed=1).orders)
    except TooManyOrders:
        return OrderFacts((), redundant, None, ())

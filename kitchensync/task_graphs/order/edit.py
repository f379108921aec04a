"""Edit the edges of a graph, and tell what they make of it: circles, edges that others imply, orders."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from kitchensync.task_graphs.errors import BadGraph, TooManyOrders, TooManyStates
from kitchensync.task_graphs.model import Edge, Graph
from kitchensync.task_graphs.order.closure import find_cycle, redundant_edges
from kitchensync.task_graphs.order.diverse import draw_diverse
from kitchensync.task_graphs.order.orders import Order, count_orders, draw_orders

SAMPLES = 3


def with_inner_edges(graph: Graph, wanted: Iterable[Edge]) -> Graph:
    """Return the graph with exactly these edges between steps, the others in their places.

    A step that waits for nothing any more gets an edge from START, one that nothing waits for an edge to END; those
    that a new edge implies go. Raises BadGraph for a step that there is not.
    """
    had, asked = set(graph.inner_edges), set(wanted)
    known = {step.node for step in graph.steps}
    if unknown := sorted({node for edge in asked for node in edge} - known):
        raise BadGraph(graph.name, f"step {unknown[0]}", "there is no such step; load the page again")
    if asked == had:
        return graph
    new = asked - had
    waiting, waited_for = {after for _, after in new}, {before for before, _ in new}
    kept = [
        (u, v)
        for u, v in graph.edges
        if ((u, v) not in had or (u, v) in asked)
        and not (u == graph.start and v in waiting)
        and not (v == graph.end and u in waited_for)
    ]
    edges = (*kept, *sorted(new), *_to_the_ends(graph, {*kept, *new}))
    links = (link for link in (*graph.links, *graph.suggested) if link.edge in edges)
    left = tuple(link for link in graph.suggested if link.edge not in asked)
    return replace(graph, edges=edges, links=tuple(links), suggested=left)


def _to_the_ends(graph: Graph, edges: set[Edge]) -> list[Edge]:
    befores, afters = {after for _, after in edges}, {before for before, _ in edges}
    first = [(graph.start, step.node) for step in graph.steps if step.node not in befores]
    last = [(step.node, graph.end) for step in graph.steps if step.node not in afters]
    return [(u, v) for u, v in (*first, *last) if u is not None and v is not None]


@dataclass(frozen=True, slots=True)
class OrderFacts:
    """What the edges of a graph make of it; `total` is None where it is not counted, in a circle always."""

    cycle: tuple[int, ...]
    redundant: tuple[Edge, ...]
    total: int | None
    orders: tuple[Order, ...]


def tell(graph: Graph) -> OrderFacts:
    """Name a circle, or the edges between steps that others imply, how many orders there are, and some samples."""
    if cycle := find_cycle(graph):
        return OrderFacts(tuple(cycle), (), None, ())
    inner = set(graph.inner_edges)
    redundant = tuple(edge for edge in redundant_edges(graph) if edge in inner)
    try:
        total = count_orders(graph)
        return OrderFacts((), redundant, total, draw_diverse(graph, count=SAMPLES, seed=1).orders)
    except TooManyStates:
        return OrderFacts((), redundant, None, _drawn(graph))


def _drawn(graph: Graph) -> tuple[Order, ...]:
    try:
        return draw_orders(graph, count=SAMPLES, seed=1).orders
    except TooManyOrders:
        return ()

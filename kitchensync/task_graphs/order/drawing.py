"""Places for the steps of a graph on paper: layers from first to last, lines that go round what lies between."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from kitchensync.task_graphs.model import Edge, Graph
from kitchensync.task_graphs.order.closure import find_cycle, topological

SWEEPS = 8

Point = tuple[float, int]
Knot = tuple[int, int, int]
"""(node, 0, 0), or (before, after, layer) where a line passes a layer."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """Places in cells: (column, layer) of every step, and of every edge the points that its line passes."""

    columns: int
    places: dict[int, Point]
    lines: dict[Edge, tuple[Point, ...]]

    def told(self) -> dict[str, Any]:
        """Return it as JSON, as the page draws it."""
        lines = [{"edge": edge, "points": points} for edge, points in self.lines.items()]
        return {"columns": self.columns, "places": self.places, "lines": lines}


def draw(graph: Graph) -> Drawing:
    """Place the steps: each below all that it waits for, neighbours near each other; circles are cut for that."""
    acyclic = _without_circles(graph)
    layer = _layers(acyclic)
    routes = {edge: _route(edge, layer) for edge in acyclic.inner_edges}
    rows = _sorted_rows(layer, routes)
    columns = max((len(row) for row in rows), default=1)
    place = {
        knot: (index + (columns - len(row)) / 2, depth)
        for depth, row in enumerate(rows)
        for index, knot in enumerate(row)
    }
    straight = {edge: _route(edge, {}) for edge in set(graph.inner_edges) - routes.keys()}
    lines = {
        edge: tuple(place[knot] for knot in route) for edge, route in sorted((routes | straight).items())
    }
    return Drawing(columns, {node: place[node, 0, 0] for node in layer}, lines)


def _without_circles(graph: Graph) -> Graph:
    ends = {graph.start, graph.end}
    left = replace(graph, edges=tuple(edge for edge in graph.edges if not ends & set(edge)))
    while cycle := find_cycle(left):
        left = replace(left, edges=tuple(edge for edge in left.edges if edge != (cycle[-2], cycle[-1])))
    return left


def _layers(graph: Graph) -> dict[int, int]:
    layer = {step.node: 0 for step in graph.steps}
    for node in topological(graph):
        for after in graph.successors[node]:
            layer[after] = max(layer[after], layer[node] + 1)
    return layer


def _route(edge: Edge, layer: Mapping[int, int]) -> list[Knot]:
    before, after = edge
    passed = range(layer[before] + 1, layer[after]) if layer else ()
    return [(before, 0, 0), *((before, after, depth) for depth in passed), (after, 0, 0)]


def _sorted_rows(layer: Mapping[int, int], routes: Mapping[Edge, Sequence[Knot]]) -> list[list[Knot]]:
    """Put every knot of a layer at the mean of its neighbours, from above and from below in turn."""
    rows: list[list[Knot]] = [[] for _ in range(max(layer.values(), default=-1) + 1)]
    for node, depth in sorted(layer.items()):
        rows[depth].append((node, 0, 0))
    above: dict[Knot, list[Knot]] = {}
    below: dict[Knot, list[Knot]] = {}
    for route in routes.values():
        for knot in route[1:-1]:
            rows[knot[2]].append(knot)
        for upper, lower in pairwise(route):
            below.setdefault(upper, []).append(lower)
            above.setdefault(lower, []).append(upper)
    for sweep in range(SWEEPS):
        downwards = sweep % 2 == 0
        neighbours = above if downwards else below
        at = _middles(rows)
        for row in rows if downwards else reversed(rows):
            row.sort(key=lambda knot: _mean([at[one] for one in neighbours.get(knot, [])], at[knot]))
            at |= _middles([row])
    return rows


def _middles(rows: Iterable[Sequence[Knot]]) -> dict[Knot, float]:
    return {knot: index - (len(row) - 1) / 2 for row in rows for index, knot in enumerate(row)}


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise

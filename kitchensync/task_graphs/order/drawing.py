"""Layout of a drawn graph: steps in layers from first to last, and lines that avoid the steps between."""

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
"""(node, 0, 0) for a step, or (before, after, layer) for a line that passes a layer."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """Places in cells: (column, layer) of every step, and the points of every edge's line."""

    columns: int
    places: dict[int, Point]
    lines: dict[Edge, tuple[Point, ...]]

    def as_json(self) -> dict[str, Any]:
        """Return the drawing as JSON for the page."""
        lines = [{"edge": edge, "points": points} for edge, points in self.lines.items()]
        return {"columns": self.columns, "places": self.places, "lines": lines}


def draw(graph: Graph) -> Drawing:
    """Place the steps: each below its prerequisites, with neighbours close to each other.

    Layers need a graph without cycles: some edges of cycles are ignored, and drawn as straight lines.
    """
    acyclic = _without_cycles(graph)
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


def _without_cycles(graph: Graph) -> Graph:
    ends = {graph.start, graph.end}
    acyclic = replace(graph, edges=tuple(edge for edge in graph.edges if not ends & set(edge)))
    while cycle := find_cycle(acyclic):
        removed = (cycle[-2], cycle[-1])
        acyclic = replace(acyclic, edges=tuple(edge for edge in acyclic.edges if edge != removed))
    return acyclic


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
    """Sort each layer by the mean place of its neighbours, alternately those above and below.

    This is the barycenter heuristic of layered graph drawing (Sugiyama et al., 1981).
    """
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
            row.sort(key=lambda knot: _mean([at[other] for other in neighbours.get(knot, [])], at[knot]))
            at |= _middles([row])
    return rows


def _middles(rows: Iterable[Sequence[Knot]]) -> dict[Knot, float]:
    return {knot: index - (len(row) - 1) / 2 for row in rows for index, knot in enumerate(row)}


def _mean(values: Sequence[float], default: float) -> float:
    return sum(values) / len(values) if values else default

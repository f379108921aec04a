"""Judge performed steps with times against the order of a graph.

Steps may overlap in time, so a pair (u, v) of the graph can be violated in three ways: *overlapped* (v started after
u, but before u ended), *late* (v started before u), and *hard* (v ended before u started). A step can be missing,
repeated or unknown; a prerequisite is unmet if its successor was done without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from kitchensync.task_graphs.model import Edge, Graph
from kitchensync.task_graphs.order.closure import full_closure, topological

State = Literal["kept", "overlapped", "late", "hard"]


@dataclass(frozen=True, slots=True)
class Performed:
    """One performance of a step; `node` is None for a step that is not in the graph."""

    node: int | None
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Prefix:
    """Steps that may come next after `done`, and steps that should have been done already."""

    done: tuple[int, ...]
    next: frozenset[int]
    missing: frozenset[int]


class Prerequisites:
    """The order of a graph, computed once for many recordings. Raises CyclicGraph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        ends = {graph.start, graph.end}
        ancestors = full_closure(graph)
        self.order = [node for node in topological(graph) if node not in ends]
        self.steps = frozenset(self.order)
        self.edges: tuple[Edge, ...] = tuple(sorted({e for e in graph.edges if not ends & set(e)}))
        self.ancestors = {node: frozenset(ancestors[node] - ends) for node in self.order}
        self.descendants = {n: frozenset(m for m in self.order if n in self.ancestors[m]) for n in self.order}
        self.parents = {n: frozenset(u for u, v in self.edges if v == n) for n in self.order}

    def after(self, done: Iterable[int]) -> Prefix:
        """Return the steps that may come next and those that should have come before."""
        done = tuple(done)
        done_steps = frozenset(done)
        open_steps = self.steps - done_steps
        skipped = frozenset(node for node in open_steps if self.descendants[node] & done_steps)
        ready = frozenset(node for node in open_steps - skipped if self.parents[node] <= done_steps)
        return Prefix(done, ready, skipped)


@dataclass(frozen=True)
class Judgement:
    """The judgement of a recording; `first` has the first performance of each step in order of time."""

    order: Prerequisites
    first: dict[int, Performed]
    repeated: tuple[int, ...]
    unknown: int

    @cached_property
    def edges(self) -> dict[Edge, State]:
        """State of every graph edge with both steps done."""
        return {
            (u, v): _state(self.first[u], self.first[v], self._place[u] > self._place[v])
            for u, v in self.order.edges
            if u in self.first and v in self.first
        }

    @cached_property
    def late_pairs(self) -> dict[Edge, State]:
        """Pairs (u, v), u an ancestor of v, in which v came first; the state is `late` or `hard`."""
        return {
            (u, v): _state(self.first[u], self.first[v], True)
            for v in self.first
            for u in self.order.ancestors[v]
            if u in self.first and self._place[u] > self._place[v]
        }

    @cached_property
    def late_edges(self) -> list[Edge]:
        """Graph edges (u, v) with v before u."""
        return [edge for edge, state in self.edges.items() if state in ("late", "hard")]

    @cached_property
    def unmet(self) -> list[Edge]:
        """Graph edges (u, v) with v done and u missing."""
        return [(u, v) for u, v in self.order.edges if v in self.first and u not in self.first]

    @property
    def missing(self) -> list[int]:
        """Steps that were not done."""
        return sorted(self.order.steps - set(self.first))

    @property
    def has_hard(self) -> bool:
        """Return whether a late pair did not even overlap in time."""
        return "hard" in self.late_pairs.values()

    @property
    def is_strict_violation(self) -> bool:
        """Return whether any edge is late or has an unmet prerequisite."""
        return bool(self.late_edges or self.unmet)

    def prefixes(self) -> list[Prefix]:
        """Return the prefix after each first performance, k = 1..n."""
        done = tuple(self.first)
        return [self.order.after(done[:k]) for k in range(1, len(done) + 1)]

    @cached_property
    def _place(self) -> dict[int, int]:
        return {node: place for place, node in enumerate(self.first)}


def _state(before: Performed, after: Performed, is_late: bool) -> State:
    if is_late:
        return "hard" if after.end_s <= before.start_s else "late"
    return "overlapped" if after.start_s < before.end_s else "kept"


def judge(order: Prerequisites, performed: Sequence[Performed]) -> Judgement:
    """Judge performances in their order, which is usually that of `by_time`."""
    first: dict[int, Performed] = {}
    repeated, unknown = [], 0
    for performance in performed:
        node = performance.node
        if node is None or node not in order.steps:
            unknown += 1
        elif node in first:
            repeated.append(node)
        else:
            first[node] = performance
    return Judgement(order, first, tuple(repeated), unknown)


def by_time(performed: Iterable[Performed]) -> list[Performed]:
    """Sort performances by start, then by end; equal ones keep their sequence."""
    return sorted(performed, key=lambda performance: (performance.start_s, performance.end_s))


def nodes_of_text(order: Prerequisites) -> dict[str, list[int]]:
    """Return the nodes of each text in topological order; several nodes may share a text."""
    nodes: dict[str, list[int]] = {}
    for node in order.order:
        nodes.setdefault(order.graph.by_node[node].label, []).append(node)
    return nodes


def match_texts(order: Prerequisites, texts: Iterable[str]) -> list[int | None]:
    """Return the node of each performed text: the k-th performance of a shared text is its k-th or its last node."""
    nodes, times = nodes_of_text(order), dict[str, int]()
    matches: list[int | None] = []
    for text in texts:
        sharing = nodes.get(text)
        count = times.get(text, 0)
        matches.append(sharing[min(count, len(sharing) - 1)] if sharing else None)
        times[text] = count + 1
    return matches

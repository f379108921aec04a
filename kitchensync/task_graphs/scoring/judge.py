"""Judge what was really done: performed steps with times against the order that a graph asks for.

Several steps may run at once, so there are three senses of "too early" for a pair (u, v) that the graph orders:
*overlapped* (v started after u, but before u ended), *late* (v started before u), and *hard* (v even ended before u
started). A step is missing, repeated or unknown; a prerequisite is unmet when its successor was done without it.
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
    """One performance of a step; `node` is None for a step that the graph does not know."""

    node: int | None
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Prefix:
    """After `done`: what may come next, and what should have been done already."""

    done: tuple[int, ...]
    next: frozenset[int]
    missing: frozenset[int]


class Prerequisites:
    """The order of a graph, worked out once for many recordings. Raises CyclicGraph."""

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
        was_done = frozenset(done)
        open_steps = self.steps - was_done
        skipped = frozenset(node for node in open_steps if self.descendants[node] & was_done)
        ready = frozenset(node for node in open_steps - skipped if self.parents[node] <= was_done)
        return Prefix(done, ready, skipped)


@dataclass(frozen=True)
class Judgement:
    """A recording against its graph; `first` has the first performance of each step in order of time."""

    order: Prerequisites
    first: dict[int, Performed]
    repeated: tuple[int, ...]
    unknown: int

    @cached_property
    def edges(self) -> dict[Edge, State]:
        """State of every graph edge whose two steps were done."""
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
        """Graph edges (u, v) whose v came first."""
        return [edge for edge, state in self.edges.items() if state in ("late", "hard")]

    @cached_property
    def unmet(self) -> list[Edge]:
        """Graph edges (u, v) whose v was done and whose u never was."""
        return [(u, v) for u, v in self.order.edges if v in self.first and u not in self.first]

    @property
    def missing(self) -> list[int]:
        """Steps that were never done."""
        return sorted(self.order.steps - set(self.first))

    @property
    def has_hard(self) -> bool:
        """Return whether some late pair did not even overlap in time."""
        return "hard" in self.late_pairs.values()

    @property
    def is_strict_violation(self) -> bool:
        """Return whether some edge is late or lacks its prerequisite."""
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
    """Judge performances given in the order in which they count (see `by_time`)."""
    first: dict[int, Performed] = {}
    repeated, unknown = [], 0
    for one in performed:
        if one.node is None or one.node not in order.steps:
            unknown += 1
        elif one.node in first:
            repeated.append(one.node)
        else:
            first[one.node] = one
    return Judgement(order, first, tuple(repeated), unknown)


def by_time(performed: Iterable[Performed]) -> list[Performed]:
    """Sort performances by start, then end, then as they stand."""
    return sorted(performed, key=lambda one: (one.start_s, one.end_s))


def nodes_of_text(order: Prerequisites) -> dict[str, list[int]]:
    """Return the nodes of each text in topological order; several nodes may share one."""
    found: dict[str, list[int]] = {}
    for node in order.order:
        found.setdefault(order.graph.by_node[node].label, []).append(node)
    return found


def match_texts(order: Prerequisites, texts: Iterable[str]) -> list[int | None]:
    """Find the node of each performed text: the k-th performance of a shared text is its k-th node, then the last."""
    nodes, used = nodes_of_text(order), dict[str, int]()
    found: list[int | None] = []
    for text in texts:
        sharing = nodes.get(text)
        count = used.get(text, 0)
        found.append(sharing[min(count, len(sharing) - 1)] if sharing else None)
        used[text] = count + 1
    return found

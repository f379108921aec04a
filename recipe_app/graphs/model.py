"""A task graph: steps with stable ids, edges "this before that", and the partial order they make.

Texts are never keys: published graphs hold several steps of one text.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property

from recipe_app.errors import CyclicGraph

START = "START"
END = "END"

Edge = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Step:
    """One node of a graph; `label` is the text of the file, `action-text` in CaptainCook4D."""

    node: int
    label: str

    @property
    def is_terminal(self) -> bool:
        """Tell whether this is START or END, which nobody performs."""
        return self.label in (START, END)

    @property
    def action(self) -> str:
        """The word before the first hyphen, or nothing when the label has none."""
        action, hyphen, _ = self.label.partition("-")
        return action.strip() if hyphen else ""

    @property
    def text(self) -> str:
        """What a person reads: the part after the hyphen, led by the action where it does not name it."""
        action, hyphen, text = self.label.partition("-")
        if not hyphen:
            return self.label.strip()
        text, action = text.strip(), action.strip()
        spoken = text if action.lower() in text.lower() else f"{action} {text}"
        return spoken[:1].upper() + spoken[1:]


@dataclass(frozen=True)
class Graph:
    """Nodes and edges (u, v) = u is done before v, in the order of their file; START and END included."""

    name: str
    nodes: tuple[Step, ...]
    edges: tuple[Edge, ...]

    @cached_property
    def by_node(self) -> dict[int, Step]:
        """Find a step by its id."""
        return {step.node: step for step in self.nodes}

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The nodes that a person performs, by ascending id."""
        return tuple(sorted((s for s in self.nodes if not s.is_terminal), key=lambda step: step.node))

    @cached_property
    def start(self) -> int | None:
        """Id of START, or None."""
        return next((step.node for step in self.nodes if step.label == START), None)

    @cached_property
    def end(self) -> int | None:
        """Id of END, or None."""
        return next((step.node for step in self.nodes if step.label == END), None)

    @cached_property
    def successors(self) -> dict[int, list[int]]:
        """Direct successors of every node, ascending."""
        found: dict[int, list[int]] = {step.node: [] for step in self.nodes}
        for before, after in sorted(set(self.edges)):
            found[before].append(after)
        return found

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 over ids, labels and edges in canonical order: equal for equal content."""
        content = {
            "nodes": sorted([step.node, step.label] for step in self.nodes),
            "edges": sorted(list(edge) for edge in set(self.edges)),
        }
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Relation:
    """A partial order over `items` (node ids); bit i of `before[j]` says that item i must precede item j."""

    items: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]


def find_cycle(graph: Graph) -> list[int] | None:
    """Return the nodes of one cycle, the first repeated at the end, or None when the graph has none."""
    entered: dict[int, bool] = {}  # node -> still on the path
    for root in sorted(graph.successors):
        if root in entered:
            continue
        path, branches = [root], [iter(graph.successors[root])]
        entered[root] = True
        while path:
            for child in branches[-1]:
                if child not in entered:
                    entered[child] = True
                    path.append(child)
                    branches.append(iter(graph.successors[child]))
                    break
                if entered[child]:
                    return [*path[path.index(child) :], child]
            else:
                entered[path.pop()] = False
                branches.pop()
    return None


def topological(graph: Graph) -> list[int]:
    """Return all nodes in order, the smallest ready id first. Raises CyclicGraph."""
    waiting = {step.node: 0 for step in graph.nodes}
    for after in (node for nodes in graph.successors.values() for node in nodes):
        waiting[after] += 1
    ready = sorted(node for node, count in waiting.items() if count == 0)
    order = []
    while ready:
        node = ready.pop(0)
        order.append(node)
        for after in graph.successors[node]:
            waiting[after] -= 1
            if waiting[after] == 0:
                ready.append(after)
        ready.sort()
    if len(order) < len(graph.nodes):
        raise CyclicGraph(graph.name, describe_cycle(graph, find_cycle(graph) or []))
    return order


def describe_cycle(graph: Graph, cycle: list[int]) -> str:
    """Write a cycle for people: `3 (Boil water) -> 5 (Pour) -> 3`."""
    named = [f"{node} ({graph.by_node[node].text})" for node in cycle[:-1]]
    return " -> ".join([*named, str(cycle[-1])]) if cycle else ""


def full_closure(graph: Graph) -> dict[int, set[int]]:
    """Return all ancestors of every node, START and END included. Raises CyclicGraph."""
    ancestors: dict[int, set[int]] = {step.node: set() for step in graph.nodes}
    for node in topological(graph):
        for after in graph.successors[node]:
            ancestors[after] |= ancestors[node] | {node}
    return ancestors


def relation(graph: Graph) -> Relation:
    """Return the partial order over the performed steps, START and END left out. Raises CyclicGraph."""
    ancestors = full_closure(graph)
    items = tuple(step.node for step in graph.steps)
    before = [0] * len(items)
    after = [0] * len(items)
    for j, node in enumerate(items):
        for i, other in enumerate(items):
            if other in ancestors[node]:
                before[j] |= 1 << i
                after[i] |= 1 << j
    return Relation(items, tuple(before), tuple(after))


def redundant_edges(graph: Graph) -> list[Edge]:
    """Return the edges that others imply: those outside the transitive reduction. Raises CyclicGraph."""
    ancestors = full_closure(graph)
    return sorted(
        (before, after)
        for before, after in set(graph.edges)
        if any(node in ancestors[after] for node in graph.successors[before])
    )


def reduction(graph: Graph) -> frozenset[Edge]:
    """Return the transitive reduction, the canonical edge set of the order. Raises CyclicGraph."""
    return frozenset(graph.edges) - frozenset(redundant_edges(graph))

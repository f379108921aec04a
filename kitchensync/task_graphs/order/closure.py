"""The partial order of a graph: cycles, closure, reduction."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from kitchensync.task_graphs.errors import CyclicGraph
from kitchensync.task_graphs.model import Edge, Graph


@dataclass(frozen=True, slots=True)
class Relation:
    """A partial order over `items` (node ids); bit i of `before[j]` is set if item i must precede item j."""

    items: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]


def find_cycle(graph: Graph) -> list[int] | None:
    """Return the nodes of one cycle, the first repeated at the end, or None if the graph has none."""
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
    """Format a cycle for messages: `3 (Boil water) -> 5 (Pour) -> 3`."""
    nodes = [f"{node} ({graph.numbered.by_node[node].text})" for node in cycle[:-1]]
    return " -> ".join([*nodes, str(cycle[-1])]) if cycle else ""


def full_closure(graph: Graph) -> dict[int, set[int]]:
    """Return all ancestors of every node, START and END included. Raises CyclicGraph."""
    ancestors: dict[int, set[int]] = {step.node: set() for step in graph.nodes}
    for node in topological(graph):
        for after in graph.successors[node]:
            ancestors[after] |= ancestors[node] | {node}
    return ancestors


def relation(graph: Graph) -> Relation:
    """Return the partial order over the steps without START and END. Raises CyclicGraph."""
    topological(graph)  # raises CyclicGraph with the cycle
    whole = relation_of(tuple(sorted(step.node for step in graph.nodes)), set(graph.edges))
    assert whole is not None
    return restricted(whole, {step.node for step in graph.steps})


def relation_of(items: tuple[int, ...], pairs: Iterable[Edge]) -> Relation | None:
    """Return the partial order over `items` with these pairs, or None if they have a cycle."""
    place = {node: index for index, node in enumerate(items)}
    following: list[list[int]] = [[] for _ in items]
    waiting = [0] * len(items)
    for before, after in pairs:
        following[place[before]].append(place[after])
        waiting[place[after]] += 1
    ready = [index for index, count in enumerate(waiting) if not count]
    ancestors, order = [0] * len(items), []
    while ready:
        index = ready.pop()
        order.append(index)
        for after in following[index]:
            ancestors[after] |= ancestors[index] | 1 << index
            waiting[after] -= 1
            if not waiting[after]:
                ready.append(after)
    if len(order) < len(items):
        return None
    descendants = [0] * len(items)
    for index in reversed(order):
        for after in following[index]:
            descendants[index] |= descendants[after] | 1 << after
    return Relation(items, tuple(ancestors), tuple(descendants))


def restricted(order: Relation, stay: Collection[int]) -> Relation:
    """Return the order among the nodes that stay, including pairs that are ordered through removed nodes."""
    kept = [index for index, node in enumerate(order.items) if node in stay]

    def squeezed(mask: int) -> int:
        return sum(1 << new for new, old in enumerate(kept) if mask >> old & 1)

    return Relation(
        tuple(order.items[index] for index in kept),
        tuple(squeezed(order.before[index]) for index in kept),
        tuple(squeezed(order.after[index]) for index in kept),
    )


def covers(order: Relation) -> list[Edge]:
    """Return the reduced edges of an order, the pairs with nothing between them, ascending by item."""
    return [
        (before, after)
        for i, before in enumerate(order.items)
        for j, after in enumerate(order.items)
        if order.before[j] >> i & 1 and not order.after[i] & order.before[j]
    ]


def pairs_of(order: Relation) -> list[Edge]:
    """Return all pairs of an order, direct or not."""
    return [
        (before, after)
        for i, before in enumerate(order.items)
        for j, after in enumerate(order.items)
        if order.before[j] >> i & 1
    ]


def redundant_edges(graph: Graph) -> list[Edge]:
    """Return the edges that other edges imply: those outside the transitive reduction. Raises CyclicGraph."""
    ancestors = full_closure(graph)
    return sorted(
        (before, after)
        for before, after in set(graph.edges)
        if any(node in ancestors[after] for node in graph.successors[before])
    )

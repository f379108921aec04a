"""Check an error script against its graph: missing steps and broken edges.

This check is independent of the generator of scripts. It imports none of the other modules, and works on plain ids
and pairs, so that an error of the generator is not repeated here.

An edge is broken if both steps are done in the wrong order. Order through left-out steps still counts: the edges are
those of the reduced order of the steps that stay.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

Pair = tuple[int, int]


def reachable(nodes: Iterable[int], edges: Collection[Pair]) -> set[Pair]:
    """Return all pairs (u, v) with a path from u to v."""
    children: dict[int, set[int]] = {node: set() for node in nodes}
    for before, after in edges:
        children[before].add(after)
    pairs = set()
    for root in children:
        waiting, reached = list(children[root]), set[int]()
        while waiting:
            node = waiting.pop()
            if node not in reached:
                reached.add(node)
                waiting += children[node]
        pairs |= {(root, node) for node in reached}
    return pairs


def kept_edges(steps: Collection[int], edges: Collection[Pair], left_out: Collection[int]) -> set[Pair]:
    """Return the reduced order of the steps that stay, including paths through left-out steps."""
    stay = set(steps) - set(left_out)
    ordered = {(u, v) for u, v in reachable(steps, edges) if u in stay and v in stay}
    return {(u, v) for u, v in ordered if not any((u, w) in ordered and (w, v) in ordered for w in stay)}


def late_pairs(steps: Collection[int], edges: Collection[Pair], script: Sequence[int]) -> set[Pair]:
    """Return all ordered pairs (u, v), direct or not, that the script does in the wrong order."""
    place = {node: index for index, node in enumerate(script)}
    pairs = reachable(steps, edges)
    return {(u, v) for u, v in pairs if u in place and v in place and place[v] < place[u]}


def faults(
    steps: Collection[int],
    edges: Collection[Pair],
    script: Sequence[int],
    *,
    missing: Collection[int],
    broken: Collection[Pair],
) -> list[str]:
    """Return the differences between a script and its statements; an empty list means that it is correct.

    `steps` and `edges` are the graph without START and END; `script` has the ids in the order of the script.
    """
    differences = []
    if len(set(script)) != len(script):
        differences.append("a step appears twice in the script")
    if unknown := set(script) - set(steps):
        differences.append(f"steps {sorted(unknown)} are not in the graph")
    absent = set(steps) - set(script)
    if absent != set(missing):
        differences.append(f"missing are {sorted(absent)}, stated {sorted(missing)}")
    place = {node: index for index, node in enumerate(script)}
    for name, candidates in (
        ("of the reduced order", kept_edges(steps, edges, absent)),
        ("of the graph", set(edges)),
    ):
        wrong = {(u, v) for u, v in candidates if u in place and v in place and place[v] < place[u]}
        if wrong != set(broken):
            differences.append(f"broken edges {name} are {sorted(wrong)}, stated {sorted(broken)}")
    return differences

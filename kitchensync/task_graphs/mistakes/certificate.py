"""Check an error script against its graph: which steps are missing, which edges are broken.

This is the second opinion on a script. It imports nothing of the other modules, on purpose, and works on plain ids
and pairs: what the generator got wrong must not be wrong here too.

An edge is broken when both steps are done, in the wrong order. With steps left out, the order that went through them
still counts: the edges are those of the reduced order of the steps that stay.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

Pair = tuple[int, int]


def reachable(nodes: Iterable[int], edges: Collection[Pair]) -> set[Pair]:
    """Return all pairs (u, v) with a path from u to v."""
    children: dict[int, set[int]] = {node: set() for node in nodes}
    for before, after in edges:
        children[before].add(after)
    found = set()
    for root in children:
        waiting, seen = list(children[root]), set[int]()
        while waiting:
            node = waiting.pop()
            if node not in seen:
                seen.add(node)
                waiting += children[node]
        found |= {(root, node) for node in seen}
    return found


def kept_edges(steps: Collection[int], edges: Collection[Pair], left_out: Collection[int]) -> set[Pair]:
    """Return the reduced order of the steps that stay, paths through left-out steps included."""
    stay = set(steps) - set(left_out)
    ordered = {(u, v) for u, v in reachable(steps, edges) if u in stay and v in stay}
    return {(u, v) for u, v in ordered if not any((u, w) in ordered and (w, v) in ordered for w in stay)}


def late_pairs(steps: Collection[int], edges: Collection[Pair], script: Sequence[int]) -> set[Pair]:
    """Return all pairs (u, v), direct or not, that the script does the wrong way round."""
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
    """Return what is not as stated; nothing means that the certificate holds.

    `steps` and `edges` are the graph without START and END; `script` the ids in the order in which they are shown.
    """
    found = []
    if len(set(script)) != len(script):
        found.append("a step stands twice in the script")
    if unknown := set(script) - set(steps):
        found.append(f"steps {sorted(unknown)} are not in the graph")
    absent = set(steps) - set(script)
    if absent != set(missing):
        found.append(f"missing are {sorted(absent)}, stated {sorted(missing)}")
    place = {node: index for index, node in enumerate(script)}
    for name, candidates in (
        ("of the reduced order", kept_edges(steps, edges, absent)),
        ("of the graph", set(edges)),
    ):
        wrong = {(u, v) for u, v in candidates if u in place and v in place and place[v] < place[u]}
        if wrong != set(broken):
            found.append(f"broken edges {name} are {sorted(wrong)}, stated {sorted(broken)}")
    return found

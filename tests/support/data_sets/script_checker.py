"""An outside checker of error scripts: reads the published files and the printed JSON, knows nothing else.

What a script claims is checked by the definitions alone: a step is missing when the script does not show it; an
edge is broken when both of its steps are shown the wrong way round; with steps left out, the edges are those of the
reduced order among the steps that stay.
"""

from __future__ import annotations

import itertools
from typing import Any


def closure(edges: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """All pairs with a path between them, by Warshall's algorithm."""
    nodes = {node for edge in edges for node in edge}
    pairs = set(edges)
    for middle in nodes:
        into = [a for a in nodes if (a, middle) in pairs]
        out = [b for b in nodes if (middle, b) in pairs]
        pairs |= set(itertools.product(into, out))
    return pairs


def truth(
    document: dict[str, Any], shown: list[int]
) -> tuple[set[int], set[tuple[int, int]], set[tuple[int, int]]]:
    """Return what a shown sequence really does: missing steps, broken reduced edges, broken edges of the file."""
    inner = {int(key) for key, label in document["steps"].items() if label not in ("START", "END")}
    edges = {(a, b) for a, b in document["edges"] if a in inner and b in inner}
    stay = set(shown)
    pairs = {(a, b) for a, b in closure(edges) if a in stay and b in stay}
    reduced = {(a, b) for a, b in pairs if not any((a, c) in pairs and (c, b) in pairs for c in stay)}
    late = {(a, b) for a, b in itertools.permutations(shown, 2) if shown.index(b) < shown.index(a)}
    return inner - stay, reduced & late, edges & late


def complaints(document: dict[str, Any], script: dict[str, Any]) -> list[str]:
    """Return what a script/1 object states wrongly about a task graph."""
    shown = [step["node"] for step in script["steps"]]
    missing, broken_reduced, broken_edges = truth(document, shown)
    stated = {tuple(edge) for edge in script["broken"]}
    found = []
    if len(set(shown)) != len(shown):
        found.append("a step is shown twice")
    if missing != set(script["missing"]):
        found.append(f"missing {missing}, stated {script['missing']}")
    if broken_reduced != stated or broken_edges != stated:
        found.append(f"broken {broken_reduced} / {broken_edges}, stated {stated}")
    return found

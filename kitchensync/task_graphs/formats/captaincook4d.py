"""Task-graph files of CaptainCook4D: parsed strictly, and written as they were read.

`{"steps": {"0": "START", "1": "Add-1/2 tsp ..", ...}, "edges": [[0, 1], ...]}`. The published files come in four
layouts; a file is written back in the layout it was read in, byte for byte.
"""

from __future__ import annotations

import json
from typing import Any

from kitchensync.task_graphs.formats.strict_json import NODE_ID, Reader, load
from kitchensync.task_graphs.model import Edge, Graph, Step


def parse_captaincook4d(text: str, *, name: str) -> Graph:
    """Parse a task graph; `name` is the file name for messages. Raises BadGraph."""
    read = Reader(name)
    document = load(text, name)
    if not isinstance(document, dict):
        raise read.fail("", 'not a task graph; expected {"steps": {..}, "edges": [..]}')
    for key in ("steps", "edges"):
        if key not in document:
            raise read.fail("", f'no "{key}"; expected {{"steps": {{..}}, "edges": [..]}}')
    if extra := sorted(set(document) - {"steps", "edges"}):
        raise read.fail(repr(extra[0]), 'unknown key; a task graph has only "steps" and "edges"')
    nodes = _nodes(document["steps"], read)
    return Graph(name, nodes, _edges(document["edges"], {step.node for step in nodes}, read))


def _nodes(steps: Any, read: Reader) -> tuple[Step, ...]:
    read.number_of_steps(len(read.object(steps, "steps")), "steps")
    nodes = []
    for key, label in steps.items():
        place = f'step "{key}"'
        if not NODE_ID.fullmatch(key):
            raise read.fail(place, "an id is a whole number without leading zeros")
        nodes.append(Step(int(key), read.label(label, place)))
    read.one_start_and_end((f'step "{step.node}"', step.label) for step in nodes)
    return tuple(nodes)


def _edges(edges: Any, nodes: set[int], read: Reader) -> tuple[Edge, ...]:
    numbers: dict[Edge, int] = {}
    for number, edge in enumerate(read.array(edges, "edges")):
        place = f"edges[{number}]"
        if not (isinstance(edge, list) and len(edge) == 2 and all(type(node) is int for node in edge)):
            raise read.fail(place, "not a pair of step ids [before, after]")
        for node in edge:
            if node not in nodes:
                raise read.fail(place, f"there is no step {node}; correct the id or add the step")
        pair = (edge[0], edge[1])
        if pair in numbers:
            raise read.fail(place, f"{list(pair)} appears already at edges[{numbers[pair]}]; remove one")
        numbers[pair] = number
    return tuple(numbers)


def _on_one_line(document: dict[str, Any]) -> str:
    return json.dumps(document)


def _indented(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, separators=(",", ":"))


def _indented_pairs(document: dict[str, Any]) -> str:
    head, _, _ = _indented({"steps": document["steps"]}).rpartition("\n}")
    return f'{head},\n  "edges":[\n{_pair_lines(document)}\n  ]\n}}'


def _line_and_pairs(document: dict[str, Any]) -> str:
    head, _, _ = _on_one_line({"steps": document["steps"]}).rpartition("}")
    return f'{head}, "edges": [\n{_pair_lines(document)}\n  ]}}'


def _pair_lines(document: dict[str, Any]) -> str:
    return ",\n".join(f"    {json.dumps(edge)}" for edge in document["edges"])


LAYOUTS = {
    "line": _on_one_line,
    "indented": _indented,
    "indented-pairs": _indented_pairs,
    "line-and-pairs": _line_and_pairs,
}
"""The layouts of the published files; `line` is the default."""


def format_captaincook4d(graph: Graph, *, layout: str = "line") -> str:
    """Write a graph as CaptainCook4D JSON, steps and edges in their order."""
    document = {
        "steps": {str(step.node): step.label for step in graph.nodes},
        "edges": [list(edge) for edge in graph.edges],
    }
    return LAYOUTS[layout](document)


def layout_of(text: str, graph: Graph) -> str | None:
    """Return the layout in which the graph was written as `text`, or None."""
    return next((name for name in LAYOUTS if format_captaincook4d(graph, layout=name) == text), None)

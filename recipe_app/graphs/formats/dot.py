"""Task graphs as DOT: `digraph { 0 [label="START"]; 0 -> 1; }`, the notation that language models are shown.

What DOT has no words for (spans, edge kinds, suggestions, languages) travels as `graph/1` JSON in one attribute of
the graph, so that nothing is lost on the way back. Attributes of other people's files are carried along.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import Any

from recipe_app.errors import BadGraph
from recipe_app.graphs.formats.dot_reader import DotGraph, read_dot
from recipe_app.graphs.formats.graph_json import format_graph_json, parse_graph_json
from recipe_app.graphs.formats.strict_json import NODE_ID, Reader, dump
from recipe_app.graphs.model import END, START, Edge, Graph, Link, Step

ATTRIBUTE = "kitchensync"


def format_dot(graph: Graph) -> str:
    """Write a graph as DOT, nodes and edges in their order; suggestions travel in the JSON attribute alone."""
    lines = [f"digraph {_quoted(graph.name.rpartition('.')[0] or graph.name)} {{"]
    if _has_more(graph):
        lines.append(f"  {ATTRIBUTE}={_quoted(dump(json.loads(format_graph_json(graph))))};")
    kept = json.loads(graph.extra).get("dot", {}) if graph.extra else {}
    lines += [f"  {_id(key)}={_quoted(value)};" for key, value in kept.items()]
    names = {step.node: _node_name(step) for step in graph.nodes}
    for step in graph.nodes:
        lines.append(f"  {names[step.node]} [{_attributes({'label': step.label} | _kept(step.extra))}];")
    links = {link.edge: link for link in graph.links}
    for edge in graph.edges:
        kept = _kept(links[edge].extra) if edge in links else {}
        lines.append(f"  {names[edge[0]]} -> {names[edge[1]]}{f' [{_attributes(kept)}]' if kept else ''};")
    return "\n".join([*lines, "}"]) + "\n"


def format_dot_texts(graph: Graph) -> str:
    """Write a graph as DOT whose nodes are the texts of its steps, for prompts; one that comes again is numbered."""
    names: dict[int, str] = {}
    for step in graph.nodes:
        numbered = (f"{step.label} ({count})" for count in itertools.count(2))
        names[step.node] = next(
            name
            for name in map(_quoted, itertools.chain([step.label], numbered))
            if name not in names.values()
        )
    lines = [f"digraph {_quoted(graph.name.rpartition('.')[0] or graph.name)} {{"]
    lines += [f"  {names[step.node]};" for step in graph.nodes]
    lines += [f"  {names[before]} -> {names[after]};" for before, after in graph.edges]
    return "\n".join([*lines, "}"]) + "\n"


def _has_more(graph: Graph) -> bool:
    """Tell whether the graph knows more than labels, edges and what came from DOT itself."""
    bare = Graph(
        graph.name, tuple(Step(s.node, s.label, extra=_only_dot(s.extra)) for s in graph.nodes), graph.edges
    )
    links = tuple(Link(link.edge, extra=_only_dot(link.extra)) for link in graph.links)
    return graph != replace(bare, links=links, extra=_only_dot(graph.extra))


def _only_dot(extra: str) -> str:
    return extra if extra and set(json.loads(extra)) == {"dot"} else ""


def _kept(extra: str) -> dict[str, str]:
    found: dict[str, str] = json.loads(extra).get("dot", {}) if extra else {}
    return {key: value for key, value in found.items() if key != "id"}


def _node_name(step: Step) -> str:
    own = json.loads(step.extra).get("dot", {}).get("id") if step.extra else None
    return _id(own) if own is not None else str(step.node)


def _attributes(values: dict[str, str]) -> str:
    return ", ".join(f"{_id(key)}={_quoted(value)}" for key, value in values.items())


def _id(text: str) -> str:
    plain = text.isascii() and text.isidentifier() and text.lower() not in _KEYWORDS
    return text if plain else _quoted(text)


_KEYWORDS = ("graph", "digraph", "node", "edge", "subgraph", "strict")


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def parse_dot(text: str, *, name: str) -> Graph:
    """Parse a DOT digraph; `name` is the file name for messages. Raises BadGraph."""
    found = read_dot(text, name)
    if ATTRIBUTE in found.attributes:
        graph = parse_graph_json(found.attributes[ATTRIBUTE], name=name)
        if _bare(found, name) != _bare_of(graph):
            raise BadGraph(
                name, ATTRIBUTE, "does not fit the nodes and edges; remove that line to accept the change"
            )
        return graph
    return _graph(found, name)


def _bare(found: DotGraph, name: str) -> tuple[dict[int, str], set[Edge]]:
    graph = _graph(replace(found, attributes={}), name)
    return _bare_of(graph)


def _bare_of(graph: Graph) -> tuple[dict[int, str], set[Edge]]:
    return {step.node: step.label for step in graph.nodes}, set(graph.edges)


def _graph(found: DotGraph, name: str) -> Graph:
    read = Reader(name)
    read.number_of_steps(len(found.nodes), "")
    numbers = _numbers(list(found.nodes))
    nodes = tuple(_step(key, numbers[key], dict(attributes), read) for key, attributes in found.nodes.items())
    read.one_start_and_end((f"node {step.node}", step.label) for step in nodes)
    edges = {(numbers[a], numbers[b]): attributes for (a, b), attributes in found.edges.items()}
    links = tuple(
        Link(edge, extra=dump({"dot": attributes})) for edge, attributes in edges.items() if attributes
    )
    extra = dump({"dot": found.attributes}) if found.attributes else ""
    return Graph(name, nodes, tuple(edges), links=links, extra=extra)


def _numbers(names: list[str]) -> dict[str, int]:
    """Keep ids that are whole numbers; give the others the next free ones, in their order."""
    numbers = {key: int(key) for key in names if NODE_ID.fullmatch(key)}
    taken, following = set(numbers.values()), 0
    for key in names:
        if key not in numbers:
            while following in taken:
                following += 1
            numbers[key] = following
            taken.add(following)
    return numbers


def _step(key: str, number: int, attributes: dict[str, Any], read: Reader) -> Step:
    label = attributes.pop("label", key)
    if label.strip().upper() in (START, END) and key.upper() in (START, END, str(number)):
        label = label if label in (START, END) else label.strip().upper()
    read.label(label, f"node {key}")
    own = {} if str(number) == key else {"id": key}
    kept = own | attributes
    return Step(number, label, extra=dump({"dot": kept}) if kept else "")

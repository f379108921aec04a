"""Task graphs as DOT: `digraph { 0 [label="START"]; 0 -> 1; }`, the notation that language models are shown.

What DOT has no words for (spans, edge kinds, suggestions, languages) travels as `graph/1` JSON in one attribute of
the graph, so that nothing is lost on the way back. Attributes of other people's files are carried along.
"""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from kitchensync.task_graphs.errors import BadGraph
from kitchensync.task_graphs.formats.graph_json import format_graph_json, parse_graph_json
from kitchensync.task_graphs.formats.strict_json import NODE_ID, Reader, dump
from kitchensync.task_graphs.model import END, START, Edge, Graph, Link, Step

_TOKEN = re.compile(
    r"""
      (?P<skip>\s+ | //[^\n]* | /\*.*?\*/ | ^\#[^\n]*)
    | (?P<arrow>->|--)
    | (?P<mark>[{}\[\];,=:+])
    | (?P<quoted>"(?:[^"\\]|\\.)*")
    | (?P<html><)
    | (?P<plain>-?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?![A-Za-z_]) | [A-Za-z_\u0080-\uffff][A-Za-z0-9_\u0080-\uffff]*)
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)

Attributes = dict[str, str]


@dataclass(frozen=True)
class DotGraph:
    """What a file says: nodes and edges by their own names, in order of appearance, with their attributes."""

    nodes: dict[str, Attributes] = field(default_factory=dict)
    edges: dict[tuple[str, str], Attributes] = field(default_factory=dict)
    attributes: Attributes = field(default_factory=dict)


def read_dot(text: str, name: str) -> DotGraph:
    """Parse a digraph. Raises BadGraph with the line."""
    reader = _Reader(text, name)
    try:
        reader.graph()
    except RecursionError as error:
        raise BadGraph(name, "", "nested too deeply; this is no task graph") from error
    return reader.found


class _Reader:
    def __init__(self, text: str, name: str) -> None:
        self.name, self.text = name, text
        self.tokens = self._tokens()
        self.at = 0
        self.found = DotGraph()

    def _tokens(self) -> list[tuple[str, str, int]]:
        tokens, place = [], 0
        while place < len(self.text):
            found = _TOKEN.match(self.text, place)
            if found is None:
                raise self._error(place, f"{self.text[place : place + 10]!r} is no DOT")
            kind, token = str(found.lastgroup), found.group()
            if kind == "html":
                raise self._error(place, "HTML labels are not understood; use quoted text")
            if kind == "quoted":
                token = re.sub(
                    r"\\(.)", lambda one: {"n": "\n"}.get(one[1], one[1]), token[1:-1], flags=re.DOTALL
                )
            if kind != "skip":
                tokens.append((kind, token, place))
            place = found.end()
        return tokens

    def _error(self, place: int, why: str) -> BadGraph:
        return BadGraph(self.name, f"line {self.text.count(chr(10), 0, place) + 1}", why)

    def _fail(self, why: str) -> BadGraph:
        place = self.tokens[self.at][2] if self.at < len(self.tokens) else len(self.text)
        return self._error(place, why)

    def _next_is(self, *marks: str) -> bool:
        if self.at >= len(self.tokens):
            return False
        kind, token, _ = self.tokens[self.at]
        return kind != "quoted" and token.lower() in marks

    def _take(self, *marks: str) -> bool:
        if self._next_is(*marks):
            self.at += 1
            return True
        return False

    def _need(self, mark: str) -> None:
        if not self._take(mark):
            raise self._fail(f"expected {mark!r}")

    def _name(self) -> str:
        if self.at >= len(self.tokens) or self.tokens[self.at][0] not in ("quoted", "plain"):
            raise self._fail("expected a name")
        self.at += 1
        name = self.tokens[self.at - 1][1]
        while self._take("+"):
            name += self._name()
        return name

    def graph(self) -> None:
        """graph: [strict] digraph [name] { statements }"""
        self._take("strict")
        if not self._take("digraph"):
            raise self._fail("not a digraph; a task graph has directions")
        if not self._next_is("{"):
            self._name()
        self._group()
        if self.at < len(self.tokens):
            raise self._fail("something follows the graph; keep one graph a file")

    def _group(self) -> list[str]:
        """{ statements }: return the nodes named in it."""
        self._need("{")
        nodes: list[str] = []
        while not self._take("}"):
            if not self._take(";", ","):
                nodes += self._statement()
        return nodes

    def _statement(self) -> list[str]:
        if self._next_is("graph", "node", "edge") and self._is_default():
            self.at += 1
            self._attributes()  # defaults of drawing: nothing of a task graph
            return []
        if (
            self.tokens[self.at + 1 : self.at + 2]
            and self.tokens[self.at + 1][1] == "="
            and not self._next_is("{")
        ):
            key = self._name()
            self._need("=")
            self.found.attributes[key] = self._name()
            return []
        ends = [self._end()]
        while self._next_is("->", "--"):
            if self._take("--"):
                raise self._fail("an edge without direction; write ->")
            self._need("->")
            ends.append(self._end())
        attributes = self._attributes() if self._next_is("[") else {}
        for before, after in pairwise(ends):
            for edge in ((u, v) for u in before for v in after):
                self.found.edges.setdefault(edge, {}).update(attributes)
        if len(ends) == 1:
            for node in ends[0]:
                self.found.nodes[node].update(attributes)
        return [node for end in ends for node in end]

    def _is_default(self) -> bool:
        return self.at + 1 < len(self.tokens) and self.tokens[self.at + 1][1] == "["

    def _end(self) -> list[str]:
        """One end of an edge: a node, or all nodes of a group."""
        if self._take("subgraph") and not self._next_is("{"):
            self._name()
        if self._next_is("{"):
            return self._group()
        node = self._name()
        while self._take(":"):
            self._name()
        self.found.nodes.setdefault(node, {})
        return [node]

    def _attributes(self) -> Attributes:
        found: Attributes = {}
        while self._take("["):
            while not self._take("]"):
                if self._take(",", ";"):
                    continue
                key = self._name()
                found[key] = self._name() if self._take("=") else "true"
        return found


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
    """Return whether the graph knows more than labels, edges and what came from DOT itself."""
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

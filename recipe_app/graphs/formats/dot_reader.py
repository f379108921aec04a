"""Read the DOT language as far as task graphs use it: nodes, edges, chains, groups, attributes, comments."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise

from recipe_app.errors import BadGraph

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
    reader.graph()
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

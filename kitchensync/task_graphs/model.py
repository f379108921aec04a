"""A task graph: steps with stable ids, and edges "this before that", which define a partial order.

Texts are never keys: published graphs have several steps with the same text.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from kitchensync.task_graphs.errors import NotFound

START = "START"
END = "END"

Edge = tuple[int, int]


SpanKind = Literal["amount", "unit", "tool", "ingredient", "duration", "temperature"]
EdgeKind = Literal["", "physical", "quality", "convention"]


@dataclass(frozen=True, slots=True)
class Span:
    """A typed part of a step: characters [start, end) of its label."""

    kind: SpanKind
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Step:
    """One node of a graph; `label` is the text of the file, `action-text` in CaptainCook4D.

    `est_s` is the estimated duration (0: unknown); a `passive` step runs by itself. `extra` is a JSON object with the
    data that only its file format has.
    """

    node: int
    label: str
    spans: tuple[Span, ...] = ()
    est_s: int = 0
    passive: bool = False
    hazards: tuple[str, ...] = ()
    extra: str = ""

    @property
    def is_terminal(self) -> bool:
        """Return whether this is START or END, which are not performed."""
        return self.label in (START, END)

    @property
    def action(self) -> str:
        """The word before the first hyphen; empty if the label has no hyphen."""
        action, hyphen, _ = self.label.partition("-")
        return action.strip() if hyphen else ""

    @property
    def instruction(self) -> str:
        """The label without its action word."""
        _, hyphen, text = self.label.partition("-")
        return (text if hyphen else self.label).strip()

    @property
    def text(self) -> str:
        """The text that people read: the instruction, after the action if the instruction lacks it."""
        text, action = self.instruction, self.action
        if not action:
            return self.label.strip()
        if action.lower() not in text.lower():
            text = f"{action} {text}"
        return text[:1].upper() + text[1:]


@dataclass(frozen=True, slots=True)
class Link:
    """Facts about an edge: its kind, its reason, and its origin (a person, a rule, a data set)."""

    edge: Edge
    kind: EdgeKind = ""
    why: str = ""
    origin: str = ""
    extra: str = ""


@dataclass(frozen=True, slots=True)
class Wording:
    """The labels of all steps and the title of the recipe in one language."""

    language: str
    labels: tuple[tuple[int, str], ...]
    title: str = ""


@dataclass(frozen=True, slots=True)
class RecipeVersion:
    """The recipe, version and source of a graph."""

    recipe: str = ""
    version: str = ""
    title: str = ""
    source: str = ""
    licence: str = ""


@dataclass(frozen=True)
class Graph:
    """Nodes, and edges (u, v): u is done before v. Both include START and END and are in the order of their file.

    `links` has facts about some of the edges. `suggested` are proposed edges that are not accepted yet; they do not
    affect the order.
    """

    name: str
    nodes: tuple[Step, ...]
    edges: tuple[Edge, ...]
    links: tuple[Link, ...] = ()
    suggested: tuple[Link, ...] = ()
    recipe: RecipeVersion = RecipeVersion()
    language: str = ""
    wordings: tuple[Wording, ...] = ()
    extra: str = ""

    @cached_property
    def by_node(self) -> dict[int, Step]:
        """Node id -> step."""
        return {step.node: step for step in self.nodes}

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The nodes without START and END, by ascending id."""
        return tuple(sorted((s for s in self.nodes if not s.is_terminal), key=lambda step: step.node))

    @cached_property
    def inner_edges(self) -> tuple[Edge, ...]:
        """The edges without those of START and END, ascending, each once."""
        ends = {self.start, self.end}
        return tuple(sorted(edge for edge in set(self.edges) if not ends & set(edge)))

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
        successors: dict[int, list[int]] = {step.node: [] for step in self.nodes}
        for before, after in sorted(set(self.edges)):
            successors[before].append(after)
        return successors

    @cached_property
    def numbered(self) -> Graph:
        """The graph with a number added to steps that share a text, so that a sentence can name one of them."""
        count = Counter(step.text for step in self.steps)
        numbers: Counter[str] = Counter()
        labels = {}
        for step in self.steps:
            numbers[step.text] += 1
            labels[step.node] = f"{step.label} #{numbers[step.text]}" if count[step.text] > 1 else step.label
        nodes = [replace(step, label=labels.get(step.node, step.label)) for step in self.nodes]
        return replace(self, nodes=tuple(nodes))

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of the content in canonical order.

        It does not depend on the file's name, the sequence of nodes and edges, or suggestions. Absent facts are not
        hashed, so a graph without facts has the same hash in every format.
        """
        content: dict[str, object] = {
            "nodes": sorted([step.node, step.label] for step in self.nodes),
            "edges": sorted(list(edge) for edge in set(self.edges)),
        }
        more = {
            "facts": sorted(
                [s.node, s.est_s, s.passive, *sorted(s.hazards)]
                for s in self.nodes
                if s.est_s or s.passive or s.hazards
            ),
            "spans": sorted([s.node, p.kind, p.start, p.end] for s in self.nodes for p in s.spans),
            "links": sorted(
                [*n.edge, n.kind, n.why, n.origin] for n in self.links if n.kind or n.why or n.origin
            ),
            "recipe": [self.recipe.recipe, self.recipe.version] if self.recipe.recipe else [],
            "language": [self.language] if self.language else [],
            "wordings": sorted(
                [w.language, *([w.title] if w.title else []), *map(list, sorted(w.labels))]
                for w in self.wordings
            ),
        }
        content |= {key: value for key, value in more.items() if value}
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def in_language(self, language: str) -> Graph:
        """Return the graph with the labels of another language. Raises NotFound."""
        if language == self.language:
            return self
        wording = next((wording for wording in self.wordings if wording.language == language), None)
        if wording is None:
            languages = ", ".join([self.language or "(unnamed)", *(w.language for w in self.wordings)])
            raise NotFound(
                "no language {name!r}; {recipe} has {known}", name=language, recipe=self.name, known=languages
            )
        labels = dict(wording.labels)
        nodes = tuple(s if s.is_terminal else replace(s, label=labels[s.node], spans=()) for s in self.nodes)
        own = Wording(self.language, tuple((s.node, s.label) for s in self.steps), self.recipe.title)
        others = tuple(other for other in self.wordings if other is not wording)
        recipe = replace(self.recipe, title=wording.title)
        return replace(self, nodes=nodes, language=language, wordings=(*others, own), recipe=recipe)

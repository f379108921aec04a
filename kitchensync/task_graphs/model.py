"""A task graph: steps with stable ids, edges "this before that", and the partial order they make.

Texts are never keys: published graphs hold several steps of one text.
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
    """A typed piece of a step: characters [start, end) of its label."""

    kind: SpanKind
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Step:
    """One node of a graph; `label` is the text of the file, `action-text` in CaptainCook4D.

    `est_s` is how long it takes (0: not known), `passive` that it runs by itself, `hazards` what can hurt. `extra`
    is a JSON object of what only its file format knows, carried along.
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
        """Return whether this is START or END, which nobody performs."""
        return self.label in (START, END)

    @property
    def action(self) -> str:
        """The word before the first hyphen, or nothing when the label has none."""
        action, hyphen, _ = self.label.partition("-")
        return action.strip() if hyphen else ""

    @property
    def instruction(self) -> str:
        """The label without its action word, as it stands."""
        _, hyphen, text = self.label.partition("-")
        return (text if hyphen else self.label).strip()

    @property
    def text(self) -> str:
        """What a person reads: the instruction, led by the action where it does not name it."""
        text, action = self.instruction, self.action
        if not action:
            return self.label.strip()
        spoken = text if action.lower() in text.lower() else f"{action} {text}"
        return spoken[:1].upper() + spoken[1:]


@dataclass(frozen=True, slots=True)
class Link:
    """What is known about an edge: why it must hold, and who said so (a person, a rule, a data set)."""

    edge: Edge
    kind: EdgeKind = ""
    why: str = ""
    origin: str = ""
    extra: str = ""


@dataclass(frozen=True, slots=True)
class Wording:
    """The labels of all steps in one language, and what the recipe is called in it."""

    language: str
    labels: tuple[tuple[int, str], ...]
    title: str = ""


@dataclass(frozen=True, slots=True)
class RecipeVersion:
    """Which recipe a graph belongs to, which version of it, and where it comes from."""

    recipe: str = ""
    version: str = ""
    title: str = ""
    source: str = ""
    licence: str = ""


@dataclass(frozen=True)
class Graph:
    """Nodes and edges (u, v) = u is done before v, in the order of their file; START and END included.

    `edges` are what holds. `links` says more about some of them; `suggested` are proposals that nobody accepted yet:
    they order nothing.
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
        """Find a step by its id."""
        return {step.node: step for step in self.nodes}

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The nodes that a person performs, by ascending id."""
        return tuple(sorted((s for s in self.nodes if not s.is_terminal), key=lambda step: step.node))

    @cached_property
    def inner_edges(self) -> tuple[Edge, ...]:
        """The edges between performed steps, ascending, each once."""
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
        found: dict[int, list[int]] = {step.node: [] for step in self.nodes}
        for before, after in sorted(set(self.edges)):
            found[before].append(after)
        return found

    @cached_property
    def numbered(self) -> Graph:
        """The graph with steps that read the same told apart by a number: a sentence about one names that one."""
        times = Counter(step.text for step in self.steps)
        found: Counter[str] = Counter()
        labels = {}
        for step in self.steps:
            found[step.text] += 1
            labels[step.node] = f"{step.label} #{found[step.text]}" if times[step.text] > 1 else step.label
        return replace(
            self, nodes=tuple(replace(step, label=labels.get(step.node, step.label)) for step in self.nodes)
        )

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 over everything that matters, in canonical order: equal for equal content.

        The file's name, the sequence of nodes and edges, and proposals are left out; facts that a graph does not have
        add nothing, so a plain graph has one hash in every format.
        """
        content: dict[str, object] = {
            "nodes": sorted([step.node, step.label] for step in self.nodes),
            "edges": sorted(list(edge) for edge in set(self.edges)),
        }
        more = {
            "facts": sorted(
                [s.node, s.est_s, s.passive, *sorted(s.hazards)] for s in self.nodes if _has_facts(s)
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
        """Return the graph with the labels of another language version. Raises NotFound."""
        if language == self.language:
            return self
        found = next((wording for wording in self.wordings if wording.language == language), None)
        if found is None:
            known = ", ".join([self.language or "(unnamed)", *(w.language for w in self.wordings)])
            raise NotFound(
                "no language {name!r}; {recipe} has {known}", name=language, recipe=self.name, known=known
            )
        labels = dict(found.labels)
        nodes = tuple(s if s.is_terminal else replace(s, label=labels[s.node], spans=()) for s in self.nodes)
        own = Wording(self.language, tuple((s.node, s.label) for s in self.steps), self.recipe.title)
        others = tuple(wording for wording in self.wordings if wording is not found)
        recipe = replace(self.recipe, title=found.title)
        return replace(self, nodes=nodes, language=language, wordings=(*others, own), recipe=recipe)


def _has_facts(step: Step) -> bool:
    return bool(step.est_s or step.passive or step.hazards)

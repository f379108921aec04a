"""A first graph from the text of a recipe, in four stages: select, identify actions, develop steps, relate.

1. *select* (the readers of plain text, Cooklang and JSON-LD): title, ingredients, passages.
2. *identify*: sentences, and the verb of each.
3. *develop*: steps with one action; a sentence with two actions becomes two steps, a long one is cut between the
   actions that it lists.
4. *relate*: a step that uses something from an earlier step gives an edge. It is only suggested: the new graph has
   no edges except those of START and END until a person accepts suggestions.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from kitchensync.task_graphs.model import END, START, Edge, Graph, Link, RecipeVersion, Span, Step
from kitchensync.task_graphs.order.closure import covers, relation_of
from kitchensync.task_graphs.text.actions import LISTED_ACTION, SECOND_ACTION, action_of
from kitchensync.task_graphs.text.safety import hazards_of
from kitchensync.task_graphs.text.spans import find_spans, timers

RULE = "rule"
LONG = 90
"""Characters of a step that can be read at a glance from one metre."""

_TAIL_MARKS = string.whitespace + "\xa0\u2009\u202f;,."
_PASSIVE = re.compile(
    r"^(?:let|leave|allow|wait|bake|boil|simmer|microwave|chill|soak|rest|cool|roast|thaw)\b", re.I
)
_BACK = re.compile(
    r"\b(?:it|them|this|mixture|contents|everything|the rest|together|all the ingredients)\b", re.I
)
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+(?=[A-Z(“\"])|\n+")


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of the instructions; `spans` are those marked in the source (characters of `text`)."""

    text: str
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Selected:
    """Stage 1: the parts of a source that are the recipe."""

    title: str
    passages: tuple[Passage, ...]
    ingredients: tuple[str, ...] = ()
    source: str = ""
    language: str = ""
    recipe: str = ""


@dataclass(frozen=True, slots=True)
class Sentence:
    """Stage 2: one sentence and its action."""

    text: str
    action: str
    spans: tuple[Span, ...] = ()


NO_STEP = 2_000
"""Characters from which a text cannot be a step; it is refused later, so it is not searched for spans."""


def identify(selected: Selected) -> list[Sentence]:
    """Split the passages into sentences and find the action of each."""
    sentences = []
    for passage in selected.passages:
        ends = [(match.start(), match.end()) for match in _SENTENCE_END.finditer(passage.text)]
        starts = [0, *(after for _, after in ends)]
        stops = [*(before for before, _ in ends), len(passage.text)]
        for start, end in zip(starts, stops, strict=True):
            raw = passage.text[start:end]
            start += len(raw) - len(raw.lstrip())
            text = raw.strip().rstrip(".;")
            spans = tuple(
                replace(span, start=span.start - start, end=span.end - start)
                for span in passage.spans
                if start <= span.start and span.end <= start + len(text)
            )
            if re.search(r"\w", text):
                sentences.append(Sentence(text, action_of(text), spans))
    return sentences


def develop(sentences: Iterable[Sentence]) -> list[Step]:
    """Make one step for each action, numbered from 1, with its spans, time and hazards."""
    steps: list[Step] = []
    for sentence in sentences:
        cuts = [match.start(1) for match in SECOND_ACTION.finditer(sentence.text)]
        for start, end in zip([0, *cuts], [*cuts, len(sentence.text)], strict=True):
            for first, last in _read_at_a_glance(sentence.text, start, end):
                steps.append(_step(len(steps) + 1, sentence, first, last))
    return steps


def _read_at_a_glance(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Cut a text that is too long for a step before its listed actions, as few times as possible."""
    while end - start > LONG:
        cuts = [match.start(1) for match in LISTED_ACTION.finditer(text, start, end)]
        cut = max((at for at in cuts if at - start <= LONG), default=min(cuts, default=end))
        if cut >= end:
            break
        yield start, cut
        start = cut
    yield start, end


def _without_tail(text: str) -> str:
    """Remove punctuation, spaces, `and` and `then` from the end of a text."""
    # One pattern for all of it would need quadratic time on texts from strangers.
    while True:
        bare = text.rstrip(_TAIL_MARKS)
        word = next((word for word in ("and", "then") if bare.endswith(word)), "")
        before = bare[-len(word) - 1 : -len(word)] if word else ""
        if not word or before.isalnum() or before == "_":
            return bare
        text = bare[: -len(word)]


def _step(number: int, sentence: Sentence, start: int, end: int) -> Step:
    if end - start > NO_STEP:
        return Step(number, f"{sentence.action}-{sentence.text[start:end]}")
    text = _without_tail(sentence.text[start:end])
    action = action_of(text) if start else sentence.action
    instruction = text[:1].upper() + text[1:]
    offset = len(action) + 1
    marked = tuple(
        replace(span, start=span.start - start + offset, end=span.end - start + offset)
        for span in sentence.spans
        if start <= span.start and span.end <= start + len(text)
    )
    spans = list(marked)
    for span in find_spans(instruction):
        span = replace(span, start=span.start + offset, end=span.end + offset)
        if all(span.end <= other.start or other.end <= span.start for other in marked):
            spans.append(span)
    spans.sort(key=lambda span: span.start)
    est_s = next((timer.seconds for timer in timers(instruction)), 0)
    is_passive, hazards = bool(_PASSIVE.match(instruction)), hazards_of(instruction)
    return Step(number, f"{action}-{instruction}", tuple(spans), est_s, is_passive, hazards)


def relate(steps: Sequence[Step]) -> list[Link]:
    """Suggest edges between steps that share a container or an ingredient, or that refer to the previous step."""
    proposed: dict[Edge, Link] = {}
    for index, step in enumerate(steps):
        for kind in ("tool", "ingredient"):
            for thing in _things(step, kind):
                earlier = next((s for s in reversed(steps[:index]) if thing in _things(s, kind)), None)
                if earlier is not None:
                    edge = (earlier.node, step.node)
                    why = f"uses the {thing} of step {earlier.node}"
                    proposed.setdefault(edge, Link(edge, "physical", why, f"{RULE}: {kind}"))
        if index and _continues(step) and not any(edge[1] == step.node for edge in proposed):
            edge = (steps[index - 1].node, step.node)
            proposed[edge] = Link(edge, "", f"seems to go on with step {edge[0]}", f"{RULE}: reference")
    order = relation_of(tuple(step.node for step in steps), proposed)
    assert order is not None  # every edge points forward
    return [proposed[edge] for edge in covers(order)]


def _continues(step: Step) -> bool:
    """Return whether a step works on the result of the previous step: it refers to it, or names no container."""
    has_container = any(span.kind == "tool" for span in step.spans)
    return bool(_BACK.search(step.instruction)) or (
        not has_container and step.action.lower() in _ON_SOMETHING
    )


_ACTS_ON_SOMETHING = (
    "add blend blitz cook fold garnish leave let mix pour season serve simmer sprinkle stir top toss transfer "
    "whisk"
)
_ON_SOMETHING = frozenset(_ACTS_ON_SOMETHING.split())
"""Actions that need something to act on."""
_HELD = frozenset(
    {"knife", "spoon", "fork", "spatula", "cutting board", "paper towel", "whisk", "scissors", "lid"}
)
"""Tools that many steps use in turn: sharing one implies no order."""


def _things(step: Step, kind: str) -> set[str]:
    names = {step.label[span.start : span.end].lower() for span in step.spans if span.kind == kind}
    singular = {re.sub(r"(?<=[^s])s$", "", re.sub(r"(?<=o)es$", "", name)) for name in names}
    return singular - _HELD


def new_graph(selected: Selected, *, name: str) -> Graph:
    """Run the four stages; the graph has only edges of START and END, all others are suggestions."""
    steps = develop(identify(selected))
    end = len(steps) + 1
    edges = [(0, step.node) for step in steps] + [(step.node, end) for step in steps]
    return Graph(
        name,
        (Step(0, START), *steps, Step(end, END)),
        tuple(edges),
        suggested=tuple(relate(steps)),
        recipe=RecipeVersion(recipe=selected.recipe, title=selected.title, source=selected.source),
        language=selected.language,
    )


def in_written_order(graph: Graph) -> Graph:
    """Return the graph with its steps in the order of the text, without suggestions."""
    chain = pairwise((graph.start, *(step.node for step in graph.steps), graph.end))
    edges = tuple((before, after) for before, after in chain if before is not None and after is not None)
    return replace(graph, edges=edges, suggested=())


def accept(graph: Graph, chosen: Iterable[Edge] | None = None) -> Graph:
    """Turn suggestions into edges, all or the chosen ones, and drop the START and END edges that they imply."""
    accepted = {link.edge for link in graph.suggested} if chosen is None else set(chosen)
    links = tuple(link for link in graph.suggested if link.edge in accepted)
    inner = (*graph.inner_edges, *(link.edge for link in links))
    has_before, has_after = {after for _, after in inner}, {before for before, _ in inner}
    kept = tuple(
        (u, v)
        for u, v in graph.edges
        if not (u == graph.start and v in has_before) and not (v == graph.end and u in has_after)
    )
    return replace(
        graph,
        edges=(*kept, *(link.edge for link in links)),
        links=(*graph.links, *links),
        suggested=tuple(link for link in graph.suggested if link.edge not in accepted),
    )

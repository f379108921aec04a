"""From the text of a recipe to the start of a graph, in four stages: select, identify actions, develop steps, relate.

1. *select* (the readers of plain text, Cooklang and JSON-LD): title, ingredients, passages.
2. *identify*: sentences, and the verb of each.
3. *develop*: one action a step; a sentence with two becomes two steps, a long one is cut between the actions that it
   lists.
4. *relate*: what a step uses of an earlier one becomes an edge, proposed and never silently true: the new graph
   orders nothing but START and END until a person accepts.
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
"""Characters of a step that are read at a glance, at one metre, in letters of the size that the distance wants."""

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
    """A piece of the instructions; `spans` are those that the source marks itself (characters of `text`)."""

    text: str
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Selected:
    """Stage 1: what of a source is the recipe."""

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
"""Letters: such a text is refused as a step, and is not searched for amounts and tools before."""


def identify(selected: Selected) -> list[Sentence]:
    """Split the passages into sentences and name the action of each."""
    found = []
    for passage in selected.passages:
        for start, end in _pieces(passage.text, _SENTENCE_END):
            found += _sentence(passage, start, end)
    return found


def _pieces(text: str, boundary: re.Pattern[str]) -> list[tuple[int, int]]:
    cuts = [(found.start(), found.end()) for found in boundary.finditer(text)]
    starts, ends = [0, *(end for _, end in cuts)], [*(start for start, _ in cuts), len(text)]
    return list(zip(starts, ends, strict=True))


def _sentence(passage: Passage, start: int, end: int) -> list[Sentence]:
    said = passage.text[start:end]
    start += len(said) - len(said.lstrip())
    text = said.strip().rstrip(".;")
    spans = tuple(
        replace(span, start=span.start - start, end=span.end - start)
        for span in passage.spans
        if start <= span.start and span.end <= start + len(text)
    )
    return [Sentence(text, action_of(text), spans)] if re.search(r"\w", text) else []


def develop(sentences: Iterable[Sentence]) -> list[Step]:
    """Make one step of each action, numbered from 1, with its typed pieces, time and hazards."""
    steps: list[Step] = []
    for sentence in sentences:
        cuts = [found.start(1) for found in SECOND_ACTION.finditer(sentence.text)]
        for start, end in zip([0, *cuts], [*cuts, len(sentence.text)], strict=True):
            for first, last in _read_at_a_glance(sentence.text, start, end):
                steps.append(_step(len(steps) + 1, sentence, first, last))
    return steps


def _read_at_a_glance(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Cut a piece that is too long for a step where the next of its listed actions begins, no more than needed."""
    while end - start > LONG:
        found = [cut.start(1) for cut in LISTED_ACTION.finditer(text, start, end)]
        cut = max((at for at in found if at - start <= LONG), default=min(found, default=end))
        if cut >= end:
            break
        yield start, cut
        start = cut
    yield start, end


def _without_tail(text: str) -> str:
    """Leave out marks, spaces, `and` and `then` at the end; one pattern for all of it would take squared time."""
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
    said = text[:1].upper() + text[1:]
    offset = len(action) + 1
    marked = tuple(
        replace(span, start=span.start - start + offset, end=span.end - start + offset)
        for span in sentence.spans
        if start <= span.start and span.end <= start + len(text)
    )
    found = (replace(span, start=span.start + offset, end=span.end + offset) for span in find_spans(said))
    free = [span for span in found if all(span.end <= one.start or one.end <= span.start for one in marked)]
    spans = tuple(sorted((*marked, *free), key=lambda span: span.start))
    return Step(
        number, f"{action}-{said}", spans, _seconds(said), bool(_PASSIVE.match(said)), hazards_of(said)
    )


def _seconds(text: str) -> int:
    """Return the first time that a step names in seconds, of a range the shorter one; 0 when it names none."""
    return next((timer.seconds for timer in timers(text)), 0)


def relate(steps: Sequence[Step]) -> list[Link]:
    """Propose edges from what steps share: a container, an ingredient prepared before, or a word that points back."""
    proposed: dict[Edge, Link] = {}
    for index, step in enumerate(steps):
        for kind in ("tool", "ingredient"):
            for thing in _things(step, kind):
                earlier = next((s for s in reversed(steps[:index]) if thing in _things(s, kind)), None)
                if earlier is not None:
                    edge = (earlier.node, step.node)
                    why = f"uses the {thing} of step {earlier.node}"
                    proposed.setdefault(edge, Link(edge, "physical", why, f"{RULE}: {kind}"))
        if index and _goes_on(step) and not any(edge[1] == step.node for edge in proposed):
            edge = (steps[index - 1].node, step.node)
            proposed[edge] = Link(edge, "", f"seems to go on with step {edge[0]}", f"{RULE}: reference")
    order = relation_of(tuple(step.node for step in steps), proposed)
    assert order is not None  # every edge points forward
    return [proposed[edge] for edge in covers(order)]


def _goes_on(step: Step) -> bool:
    """Return whether a step works on what the one before it left: it says so, or names no place of its own."""
    has_place = any(span.kind == "tool" for span in step.spans)
    return bool(_BACK.search(step.instruction)) or (not has_place and step.action.lower() in _ON_SOMETHING)


_GOING_ON = (
    "add blend blitz cook fold garnish leave let mix pour season serve simmer sprinkle stir top toss transfer"
)
_ON_SOMETHING = frozenset((*_GOING_ON.split(), "whisk"))

_HELD = frozenset(
    {"knife", "spoon", "fork", "spatula", "cutting board", "paper towel", "whisk", "scissors", "lid"}
)
"""Tools that many steps hold in turn: sharing one orders nothing."""


def _things(step: Step, kind: str) -> set[str]:
    said = {step.label[span.start : span.end].lower() for span in step.spans if span.kind == kind}
    singular = {re.sub(r"(?<=[^s])s$", "", re.sub(r"(?<=o)es$", "", one)) for one in said}
    return singular - _HELD


def new_graph(selected: Selected, *, name: str) -> Graph:
    """Run the four stages: the graph has START and END edges only, all others are suggestions."""
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
    """Order the steps as they were written, each after the one before it: no proposal is left to decide."""
    chain = pairwise((graph.start, *(step.node for step in graph.steps), graph.end))
    edges = tuple((before, after) for before, after in chain if before is not None and after is not None)
    return replace(graph, edges=edges, suggested=())


def accept(graph: Graph, chosen: Iterable[Edge] | None = None) -> Graph:
    """Turn suggestions into edges, all or the chosen ones, and drop the START and END edges that they imply."""
    wanted = {link.edge for link in graph.suggested} if chosen is None else set(chosen)
    taken = tuple(link for link in graph.suggested if link.edge in wanted)
    has_before = {after for _, after in (*graph.inner_edges, *(link.edge for link in taken))}
    has_after = {before for before, _ in (*graph.inner_edges, *(link.edge for link in taken))}
    kept = tuple(
        (u, v)
        for u, v in graph.edges
        if not (u == graph.start and v in has_before) and not (v == graph.end and u in has_after)
    )
    return replace(
        graph,
        edges=(*kept, *(link.edge for link in taken)),
        links=(*graph.links, *taken),
        suggested=tuple(link for link in graph.suggested if link.edge not in wanted),
    )

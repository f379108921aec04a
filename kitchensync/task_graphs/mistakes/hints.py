"""Concrete errors for one step, proposed by rules and checked before they are shown.

A hint changes the text of a step and states the expected and the actual text. It must pass the same check as the
answers of a language model: it changes the step, the change fits its category, and it is safe.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kitchensync.task_graphs.categories import CATEGORIES
from kitchensync.task_graphs.errors import NotFound
from kitchensync.task_graphs.mistakes.hint_rules import TEXT_RULES
from kitchensync.task_graphs.model import Graph, Step
from kitchensync.task_graphs.order.closure import covers, relation
from kitchensync.task_graphs.text.safety import why_unsafe
from kitchensync.task_graphs.text.spans import pieces

RULES = "rules"
MOST_CHARACTERS = 400

CATEGORY_NAMES = tuple(category.name for category in CATEGORIES)
_MARKUP_OR_ADDRESS = re.compile(r"[<>{}]|://|\bwww\.")


@dataclass(frozen=True, slots=True)
class Hint:
    """One proposed error: `text` is the changed step, empty if its text is not changed.

    `before` is the step before which it is done, for an error of order.
    """

    node: int
    category: str
    subtype: str
    expected: str
    actual: str
    text: str
    wording: str
    origin: str = RULES
    before: int | None = None


def step_hints(step: Step, later: Sequence[str] = ()) -> list[Hint]:
    """Return the hints of the rules for a step's text, without duplicates, in the order of the categories.

    `later` are the texts of the following steps.
    """
    names_action = step.action.lower() in step.instruction.lower()
    hints = []
    for category, rule in TEXT_RULES:
        for change in rule(step.instruction):
            wording = f"{change.actual} instead of {change.expected}" if change.expected else change.actual
            text = change.instruction if names_action else f"{step.action} {change.instruction}"
            text = text[:1].upper() + text[1:]
            hint = Hint(step.node, category, change.subtype, change.expected, change.actual, text, wording)
            hints.append(hint)
    return accepted(step, sorted(hints, key=lambda hint: CATEGORY_NAMES.index(hint.category)), later)


def accepted(step: Step, hints: Iterable[Hint], later: Sequence[str] = ()) -> list[Hint]:
    """Return the hints that pass the check, each changed text once."""
    kept: dict[str, Hint] = {}
    for hint in hints:
        if why_refused(step, hint, later) is None:
            kept.setdefault(_plain(hint.text), hint)
    return list(kept.values())


def texts_after(graph: Graph, node: int) -> list[str]:
    """Return the texts of all steps that follow a step."""
    following, waiting = set[int](), [node]
    while waiting:
        new = [after for after in graph.successors[waiting.pop()] if after not in following]
        following.update(new)
        waiting += new
    return [step.text for step in graph.steps if step.node in following]


def why_refused(step: Step, hint: Hint, later: Sequence[str] = ()) -> str | None:
    """Return why a hint must not be shown, or None; all hints of rules and models pass this check."""
    if hint.category not in CATEGORY_NAMES:
        return f"there is no category {hint.category!r}"
    are_lines = all(
        len(text) <= MOST_CHARACTERS and text.isprintable() and not _MARKUP_OR_ADDRESS.search(text)
        for text in (hint.text, hint.wording, hint.subtype)
    )
    if not hint.text.strip() or not are_lines:
        return "its texts are not single lines"
    if _plain(hint.text) == _plain(step.text):
        return "it changes nothing"
    if not _fits_category(step.text, hint.text, hint.category):
        return f"the change does not fit {hint.category}"
    with_wording = f"{step.text}: {hint.wording}"
    return why_unsafe(step.text, hint.text, later) or why_unsafe(step.text, with_wording, later)


def _plain(text: str) -> str:
    return re.sub(r"\W+", " ", text).strip().lower()


_WORDS = {
    "Measurement": (
        r"\b(?:measur\w*|by eye|heaped|level|more|less|extra|double|half|twice|handful|much|amount|spoonful)\b"
    ),
    "Timing": r"\b(?:check\w*|long\w*|short\w*|early|late|soon|stop\w*|wait\w*|immediately|at once|overnight)\b",
    "Temperature": r"\b(?:raise|lower|cold|hot|warm|cool|heat\w*|boil\w*|power|temperature|frozen|iced?|lukewarm)\b",
}


def _fits_category(before: str, after: str, category: str) -> bool:
    """Return whether the change between two texts is one of its category."""
    changed = {
        kind
        for kind in ("amount", "unit", "tool", "ingredient", "duration", "temperature")
        if sorted(map(str.lower, pieces(before, kind))) != sorted(map(str.lower, pieces(after, kind)))
    }
    if category in _WORDS:
        kinds = {"Measurement": {"amount", "unit"}, "Timing": {"duration"}, "Temperature": {"temperature"}}
        different_words = set(_plain(before).split()) ^ set(_plain(after).split())
        return bool(
            changed & kinds[category] or re.search(_WORDS[category], " ".join(sorted(different_words)))
        )
    if category in ("Preparation", "Technique"):
        return not changed & {"duration", "temperature"}
    return True


def hintable(graph: Graph, node: int | None) -> list[Step]:
    """Return one step, or all. Raises NotFound."""
    steps = [step for step in graph.steps if node in (None, step.node)]
    if not steps:
        nodes = ", ".join(str(step.node) for step in graph.steps)
        raise NotFound(f"no step '{node}'; {graph.name} has {nodes}")
    return steps


def graph_hints(graph: Graph, node: int) -> list[Hint]:
    """Return the order and missing-step hints of a step: edges to break, and steps that depend on it."""
    graph = graph.numbered
    step, reduced, inner_edges = graph.by_node[node], covers(relation(graph)), set(graph.inner_edges)
    hints = []
    for before, after in reduced:
        if after == node and (before, after) in inner_edges:
            other = graph.by_node[before].text
            texts = (f"after “{other}”", f"before “{other}”", "", f"Do it before “{other}”")
            hints.append(Hint(node, "Order", "too early", *texts, before=before))
    dependent = [graph.by_node[after].text for before, after in reduced if before == node]
    effect = f"; then this suffers: {'; '.join(dependent)}" if dependent else "; nothing depends on it"
    hints.append(Hint(node, "Missing step", "left out", step.text, "left out", "", f"Leave it out{effect}"))
    return hints

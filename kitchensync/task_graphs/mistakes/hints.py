"""Concrete errors for one step, one tap to apply: what the rules propose, checked before anybody sees it.

A hint changes the step's own words, says what was expected and what is done instead, and passes the same check that
answers of a language model pass: it changes the step, it changes what its category is about, it is safe.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kitchensync.task_graphs.categories import CATEGORIES
from kitchensync.task_graphs.errors import NotFound
from kitchensync.task_graphs.mistakes.hint_rules import TEXT_RULES, Change
from kitchensync.task_graphs.model import Graph, Step
from kitchensync.task_graphs.order.closure import covers, relation
from kitchensync.task_graphs.text.safety import why_unsafe
from kitchensync.task_graphs.text.spans import pieces

RULES = "rules"
MOST_CHARACTERS = 400

CATEGORY_NAMES = tuple(category.name for category in CATEGORIES)


@dataclass(frozen=True, slots=True)
class Hint:
    """One proposed error: `text` is the step as it would be shown, empty where the step itself is not changed.

    `before` is the step that it comes in front of, where the error is its place.
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
    """Return the hints of the rules on a step's own words, without duplicates, in the order of the categories.

    `later` are the texts of the steps that follow it.
    """
    made = [
        hint_of(step, category, change, origin=RULES)
        for category, rule in TEXT_RULES
        for change in rule(step.instruction)
    ]
    return accepted(step, sorted(made, key=lambda hint: CATEGORY_NAMES.index(hint.category)), later)


def hint_of(step: Step, category: str, change: Change, *, origin: str) -> Hint:
    """Make a hint of a changed instruction."""
    wording = f"{change.actual} instead of {change.expected}" if change.expected else change.actual
    names_action = step.action.lower() in step.instruction.lower()
    text = change.instruction if names_action else f"{step.action} {change.instruction}"
    text = text[:1].upper() + text[1:]
    return Hint(step.node, category, change.subtype, change.expected, change.actual, text, wording, origin)


def accepted(step: Step, hints: Iterable[Hint], later: Sequence[str] = ()) -> list[Hint]:
    """Keep the hints that pass the check, each changed text once."""
    kept: dict[str, Hint] = {}
    for hint in hints:
        if why_refused(step, hint, later) is None:
            kept.setdefault(_plain(hint.text), hint)
    return list(kept.values())


def texts_after(graph: Graph, node: int) -> list[str]:
    """Return the texts of all steps that follow one."""
    found, waiting = set[int](), [node]
    while waiting:
        fresh = [one for one in graph.successors[waiting.pop()] if one not in found]
        found.update(fresh)
        waiting += fresh
    return [step.text for step in graph.steps if step.node in found]


def why_refused(step: Step, hint: Hint, later: Sequence[str] = ()) -> str | None:
    """Return why a hint must not be shown, or None: the one gate for rules and models alike."""
    if hint.category not in CATEGORY_NAMES:
        return f"there is no category {hint.category!r}"
    if not hint.text.strip() or not all(map(_is_line, (hint.text, hint.wording, hint.subtype))):
        return "no text of one line"
    if _plain(hint.text) == _plain(step.text):
        return "it changes nothing"
    if not _fits_category(step.text, hint.text, hint.category):
        return f"the change is not one of {hint.category}"
    return why_unsafe(step.text, hint.text, later) or why_unsafe(
        step.text, f"{step.text}: {hint.wording}", later
    )


def _is_line(text: str) -> bool:
    """Return whether a text is words of one line: no control signs, no markup, no address."""
    return len(text) <= MOST_CHARACTERS and text.isprintable() and not re.search(r"[<>{}]|://|\bwww\.", text)


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
    """Return whether what changed is what the category is about."""
    changed = {
        kind
        for kind in ("amount", "unit", "tool", "ingredient", "duration", "temperature")
        if sorted(map(str.lower, pieces(before, kind))) != sorted(map(str.lower, pieces(after, kind)))
    }
    said = _new_words(before, after)
    if category == "Measurement":
        return bool(changed & {"amount", "unit"} or re.search(_WORDS[category], said))
    if category in ("Timing", "Temperature"):
        return category.lower().replace("timing", "duration") in changed or bool(
            re.search(_WORDS[category], said)
        )
    if category in ("Preparation", "Technique"):
        return not changed & {"duration", "temperature"}
    return True


def _new_words(before: str, after: str) -> str:
    """Return the words that one text has and the other has not, either way."""
    first, second = set(_plain(before).split()), set(_plain(after).split())
    return " ".join(sorted(first ^ second))


def check_category(category: str | None) -> str | None:
    """Return the known category of a name in any case. Raises NotFound."""
    if category is None:
        return None
    found = next((name for name in CATEGORY_NAMES if name.lower() == category.lower()), None)
    if found is None:
        raise NotFound(f"no category {category!r}; known are {', '.join(CATEGORY_NAMES)}")
    return found


def hintable(graph: Graph, node: int | None) -> list[Step]:
    """Return one step, or all. Raises NotFound."""
    found = [step for step in graph.steps if node in (None, step.node)]
    if not found:
        known = ", ".join(str(step.node) for step in graph.steps)
        raise NotFound(f"no step '{node}'; {graph.name} has {known}")
    return found


def graph_hints(graph: Graph, node: int) -> list[Hint]:
    """Return the order and missing-step hints of a step: an edge to break, and who suffers when it is left out."""
    graph = graph.numbered
    order = relation(graph)
    step = graph.by_node[node]
    made = []
    in_graph = set(graph.inner_edges)
    for before, after in covers(order):
        if after == node and (before, after) in in_graph:
            other = graph.by_node[before].text
            wording = f"Do it before “{other}”"
            said = (f"after “{other}”", f"before “{other}”")
            made.append(Hint(node, "Order", "too early", *said, "", wording, before=before))
    later = [graph.by_node[user].text for before, user in covers(order) if before == node]
    suffers = f"; then this suffers: {'; '.join(later)}" if later else "; nothing depends on it"
    made.append(Hint(node, "Missing step", "left out", step.text, "left out", "", f"Leave it out{suffers}"))
    return made

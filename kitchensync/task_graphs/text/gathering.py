"""What a recipe's own words say must be fetched before cooking: ingredients with their amounts, and tools.

English rules, no model, for recipes of which nobody stated it: an amount and the noun after it, or a known ingredient
that comes without one. What is made on the way (two triangles of toast) is not fetched.
"""

from __future__ import annotations

import re

from kitchensync.task_graphs.model import Graph, Span
from kitchensync.task_graphs.text.spans import find_spans

_NOUN_ENDS = re.compile(
    r"\s*(?:[.,;:(]|\b(?:into|in|onto|on|over|with|from|to|and|for|until|at|under|through|the|then)\b)", re.I
)
_MADE = re.compile(r"\b(?:into|by|after|every|another|other|in)\s*$", re.I)
_NO_FOOD = re.compile(
    r"\binch(?:es)?\b|\b(?:glass(?:es)?|jug|cups?|mugs?|bowls?|plates?|pans?|pots?|times?|sides?|ends?|corners?)$",
    re.I,
)
_LONGEST = 48


def ingredients_in(graph: Graph) -> list[str]:
    """Return the ingredients in the order of the steps, each once, with the amounts that they come in."""
    found: dict[str, str] = {}
    for step in graph.steps:
        text, spans = step.text, find_spans(step.text)
        for said in _with_amounts(text, spans):
            found.setdefault(_key(said), said)
    named = " ".join(found).lower()
    for step in graph.steps:
        for span in find_spans(step.text):
            word = step.text[span.start : span.end].lower()
            if span.kind == "ingredient" and _key(word) not in named:
                found.setdefault(_key(word), word)
                named += f" {_key(word)}"
    return list(found.values())


def tools_in(graph: Graph) -> list[str]:
    """Return the tools that the steps name, each once."""
    words = (
        step.text[span.start : span.end].lower()
        for step in graph.steps
        for span in find_spans(step.text)
        if span.kind == "tool"
    )
    return list(dict.fromkeys(words))


def _with_amounts(text: str, spans: tuple[Span, ...]) -> list[str]:
    found = []
    for span in spans:
        if span.kind != "amount" or _MADE.search(text[: span.start]):
            continue
        ends = _NOUN_ENDS.search(text, _after_unit(span, spans))
        said = text[span.start : ends.start() if ends else len(text)].strip(" -")
        if " " in said and len(said) <= _LONGEST and not _NO_FOOD.search(said):
            found.append(said)
    return found


def _after_unit(amount: Span, spans: tuple[Span, ...]) -> int:
    """Return where the noun begins: behind the unit that stands at the amount, where there is one."""
    unit = next((one for one in spans if one.kind == "unit" and 0 <= one.start - amount.end <= 2), amount)
    return unit.end + 1


def _key(said: str) -> str:
    return said.lower().removesuffix("s")

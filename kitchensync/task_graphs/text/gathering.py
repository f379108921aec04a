"""Ingredients with their amounts, and tools, found in the steps of a recipe that does not list them.

English rules, no model: an amount and the noun after it, or a known ingredient without an amount. Products of a step
(two triangles of toast) are not ingredients.
"""

from __future__ import annotations

import re

from kitchensync.task_graphs.model import Graph, Span
from kitchensync.task_graphs.text.spans import find_spans, pieces

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
    """Return the ingredients in the order of the steps, each once, with their amounts."""
    ingredients: dict[str, str] = {}
    for step in graph.steps:
        for text in _with_amounts(step.text, find_spans(step.text)):
            ingredients.setdefault(_singular(text), text)
    all_names = " ".join(ingredients).lower()
    for step in graph.steps:
        for name in pieces(step.text, "ingredient"):
            name = name.lower()
            if _singular(name) not in all_names:
                ingredients.setdefault(_singular(name), name)
                all_names += f" {_singular(name)}"
    return list(ingredients.values())


def tools_in(graph: Graph) -> list[str]:
    """Return the tools in the steps, each once."""
    tools = (tool.lower() for step in graph.steps for tool in pieces(step.text, "tool"))
    return list(dict.fromkeys(tools))


def _with_amounts(text: str, spans: tuple[Span, ...]) -> list[str]:
    ingredients = []
    for amount in spans:
        if amount.kind != "amount" or _MADE.search(text[: amount.start]):
            continue
        units = (span for span in spans if span.kind == "unit" and 0 <= span.start - amount.end <= 2)
        noun_start = next(units, amount).end + 1
        noun_end = _NOUN_ENDS.search(text, noun_start)
        ingredient = text[amount.start : noun_end.start() if noun_end else len(text)].strip(" -")
        if " " in ingredient and len(ingredient) <= _LONGEST and not _NO_FOOD.search(ingredient):
            ingredients.append(ingredient)
    return ingredients


def _singular(name: str) -> str:
    return name.lower().removesuffix("s")

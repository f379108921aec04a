"""Facts of a recipe on tablets, and what to fetch before cooking: as stated at the desk, else from the recipe's file.

A recipe's file may have facts in the languages of its steps, under `facts` of its `extra`. Without stated ingredients
and tools, those named in its steps are used.
"""

from __future__ import annotations

import json
import re
from typing import Any

from kitchensync.recipe_app.exchange.stated_facts import OF_RECIPES
from kitchensync.recipe_app.store.shelf import Recipe
from kitchensync.task_graphs.model import Graph, Span
from kitchensync.task_graphs.text.spans import find_spans, pieces

LISTS = (*OF_RECIPES, "ingredients")
MOST, LONGEST = 60, 80
"""Limits for a file: words of a list, letters of a word."""


def facts_of(recipe: Recipe, stated: dict[str, Any], language: str) -> dict[str, Any]:
    """Return minutes and lists of words, each as stated at the desk, else from the file in this language."""
    from_file = json.loads(recipe.graph.extra or "{}").get("facts")
    file_facts = from_file if isinstance(from_file, dict) else {}
    in_language = file_facts.get(language) or file_facts.get(recipe.graph.language) or {}
    facts: dict[str, Any] = {key: stated.get(key) or _words(in_language, key) for key in LISTS}
    minutes = file_facts.get("minutes")
    by_steps = round(sum(step.est_s for step in recipe.graph.steps) / 60)
    facts["minutes"] = stated.get("minutes") or (minutes if isinstance(minutes, int) else by_steps) or None
    return facts


def to_fetch(recipe: Recipe, stated: dict[str, Any], language: str) -> dict[str, list[str]]:
    """Return the ingredients and tools to fetch before cooking this recipe."""
    facts = facts_of(recipe, stated, language)
    return {
        "ingredients": facts["ingredients"] or ingredients_in(recipe.graph)[:MOST],
        "tools": facts["tools"] or tools_in(recipe.graph)[:MOST],
    }


def _words(facts: Any, key: str) -> list[str]:
    words = facts.get(key) if isinstance(facts, dict) else None
    if not isinstance(words, list):
        return []
    return [word[:LONGEST] for word in words if isinstance(word, str) and word.strip()][:MOST]


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

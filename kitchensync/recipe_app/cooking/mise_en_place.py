"""Facts of a recipe on tablets, and what to fetch before cooking: as stated at the desk, else from the recipe's file.

A recipe's file may have facts in the languages of its steps, under `facts` of its `extra`. Without stated ingredients
and tools, those named in its steps are used.
"""

from __future__ import annotations

import json
from typing import Any

from kitchensync.recipe_app.exchange.stated_facts import OF_RECIPES
from kitchensync.recipe_app.store.shelf import Recipe
from kitchensync.task_graphs.text.gathering import ingredients_in, tools_in

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

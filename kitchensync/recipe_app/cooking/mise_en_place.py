"""What tablets say of a recipe, and what is fetched before cooking: as the desk stated it, else as it came along.

A recipe's file may carry facts in the languages of its steps, under `facts` of its `extra`. Where nobody said what is
needed, the words of its steps are asked.
"""

from __future__ import annotations

import json
from typing import Any

from kitchensync.recipe_app.exchange.stated_facts import OF_RECIPES
from kitchensync.recipe_app.store.shelf import Recipe
from kitchensync.task_graphs.text.gathering import ingredients_in, tools_in

LISTS = (*OF_RECIPES, "ingredients")
MOST, LONGEST = 60, 80
"""Words of a list, and letters of a word, that are taken from a file."""


def facts_of(recipe: Recipe, stated: dict[str, Any], language: str) -> dict[str, Any]:
    """Return minutes and lists of words: each as it was stated, else as the file says it in this language."""
    found = json.loads(recipe.graph.extra or "{}").get("facts")
    came = found if isinstance(found, dict) else {}
    said = came.get(language) or came.get(recipe.graph.language) or {}
    facts: dict[str, Any] = {key: stated.get(key) or _words(said, key) for key in LISTS}
    minutes = came.get("minutes")
    by_steps = round(sum(step.est_s for step in recipe.graph.steps) / 60)
    facts["minutes"] = stated.get("minutes") or (minutes if isinstance(minutes, int) else by_steps) or None
    return facts


def to_fetch(recipe: Recipe, stated: dict[str, Any], language: str) -> dict[str, list[str]]:
    """Return the ingredients and the tools to be fetched before this recipe is cooked."""
    facts = facts_of(recipe, stated, language)
    return {
        "ingredients": facts["ingredients"] or ingredients_in(recipe.graph)[:MOST],
        "tools": facts["tools"] or tools_in(recipe.graph)[:MOST],
    }


def _words(said: Any, key: str) -> list[str]:
    words = said.get(key) if isinstance(said, dict) else None
    if not isinstance(words, list):
        return []
    return [word[:LONGEST] for word in words if isinstance(word, str) and word.strip()][:MOST]

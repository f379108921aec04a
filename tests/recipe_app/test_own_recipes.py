"""The recipes that come along: usable as they are, and of the kinds that a first day needs."""

from __future__ import annotations

import re
from collections import Counter

from kitchensync.recipe_app.store.shelf import OWN_RECIPES, Recipe, Shelf


def test_six_recipes_of_different_kinds_are_ready() -> None:
    everything = Shelf(OWN_RECIPES).everything()
    assert all(isinstance(found, Recipe) for found in everything)
    recipes = {found.name: found for found in everything if isinstance(found, Recipe)}
    assert len(recipes) >= 6
    words = {
        name: " ".join(step.text.lower() for step in found.graph.steps) for name, found in recipes.items()
    }
    hot = ("heat", "boil", "microwave", "toast", "pan ", "stove")
    assert any(not any(word in said for word in hot) for said in words.values())
    assert any("microwave" in said for said in words.values())
    assert any("pan " in said for said in words.values())
    totals = {name: found.total or 0 for name, found in recipes.items()}
    assert any(total < 10 for total in totals.values())
    assert any(total > 1_000_000 for total in totals.values())
    texts = {name: Counter(step.text for step in found.graph.steps) for name, found in recipes.items()}
    assert any(count.most_common(1)[0][1] == 2 for count in texts.values())


def test_every_one_is_said_in_three_languages() -> None:
    for recipe in Shelf(OWN_RECIPES).recipes():
        assert set(recipe.titles) == {"en", "de", "ar"}
        assert len(set(recipe.titles.values())) == 3
        english = {step.node: step.text for step in recipe.graph.steps}
        for language in ("de", "ar"):
            said = {step.node: step.text for step in recipe.graph.in_language(language).steps}
            assert said.keys() == english.keys()
            assert not set(said.values()) & set(english.values())
            same = {n for n in english if list(english.values()).count(english[n]) > 1}
            assert {
                n for n in said if list(said.values()).count(said[n]) > 1
            } == same  # two equal texts stay two
            numbers = {node: re.findall(r"[0-9]+", text) for node, text in said.items()}
            wanted = {node: re.findall(r"[0-9]+", text) for node, text in english.items()}
            assert all(set(numbers[node]) <= set(wanted[node]) for node in english)  # no amount of its own

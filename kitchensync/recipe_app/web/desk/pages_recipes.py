"""The desk's recipe pages: the shelf, one recipe, a script of it to print."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any, Literal, cast

from fastapi import Query, Request
from fastapi.responses import Response

from kitchensync.operations.session_state import State
from kitchensync.recipe_app.cooking import mise_en_place, recipe_pictures, training
from kitchensync.recipe_app.cooking.choosing import frozen
from kitchensync.recipe_app.exchange.stated_facts import OF_RECIPES, RECIPE, latest
from kitchensync.recipe_app.people.roles import Access
from kitchensync.recipe_app.review.recorded_evidence import contradicted, cooked
from kitchensync.recipe_app.store import tables
from kitchensync.recipe_app.store.shelf import Recipe, UnusableRecipe
from kitchensync.recipe_app.web.desk.pages import printed, render
from kitchensync.recipe_app.web.door.access import Asking, Route, Tools
from kitchensync.task_graphs.categories import CATEGORIES
from kitchensync.task_graphs.model import Graph
from kitchensync.task_graphs.text.plain_lines import LINE_KINDS
from kitchensync.task_graphs.text.recipe_text import LONG

PAGE, EVIDENCE = 100, 50
"""Recipes per page; newest recordings that are checked for contradicted edges."""
SORTS: dict[str, Callable[[Recipe], Any]] = {
    "title": lambda recipe: recipe.title.lower(),
    "steps": lambda recipe: (len(recipe.graph.steps), recipe.title),
    "orders": lambda recipe: (recipe.total is None, recipe.total or 0, recipe.title),
}


def recipes(
    request: Request,
    tools: Tools,
    visitor: Asking,
    q: Annotated[str, Query(max_length=80)] = "",
    heating: Annotated[str, Query(max_length=80)] = "",
    skills: Annotated[str, Query(max_length=80)] = "",
    with_tools: Annotated[str, Query(max_length=80, alias="tools")] = "",
    sort: Literal["title", "steps", "orders"] = "title",
    page: Annotated[int, Query(ge=1, le=10**6)] = 1,
) -> Response:
    """Show the recipes on the shelf, searched, filtered, sorted and paged, and those that cannot be used."""
    everything = tools.shelf.everything()
    stated = latest(tools.records, RECIPE)
    filters = {"heating": heating, "skills": skills, "tools": with_tools}

    def matches(recipe: Recipe) -> bool:
        facts = stated.get(recipe.name, {})
        text = " ".join([recipe.name, recipe.title, *(step.text for step in recipe.graph.steps)]).lower()
        has_words = all(word in text for word in q.lower().split())
        return has_words and all(not word or word in facts.get(fact, []) for fact, word in filters.items())

    usable = [recipe for recipe in everything if not isinstance(recipe, UnusableRecipe)]
    matching = sorted(filter(matches, usable), key=SORTS[sort])
    pictures = recipe_pictures.of_all(tools.records)
    fields = {
        "line_kinds": LINE_KINDS,
        "cards": {
            recipe.name: recipe_pictures.of_result(recipe, pictures.get(recipe.name, {})) for recipe in usable
        },
        "recipes": matching[(page - 1) * PAGE : page * PAGE],
        "count": len(matching),
        "page": page,
        "pages": max(1, -(-len(matching) // PAGE)),
        "chosen": {"q": q, **filters, "sort": sort},
        "facts": {
            fact: sorted({word for recipe in usable for word in stated.get(recipe.name, {}).get(fact, [])})
            for fact in OF_RECIPES
        },
        "sorts": tuple(SORTS),
        "unusable": [recipe for recipe in everything if isinstance(recipe, UnusableRecipe)],
        "numbers": {row["graph_hash"]: row["version"] for row in tools.records.rows(tables.recipe)},
    }
    return render(request, "desk/recipes.html", visitor=visitor, **fields)


def recipe(request: Request, tools: Tools, visitor: Asking, recipe: str) -> Response:
    """Show one recipe: its steps with their prerequisites, its versions, a script to print."""
    shelved = tools.shelf.get(recipe)
    table = tables.recipe
    versions = tools.records.rows(table, table.c.name == shelved.name, order=table.c.version.desc())
    befores: dict[int, list[int]] = {}
    for before, after in shelved.graph.inner_edges:
        befores.setdefault(after, []).append(before)
    steps = shelved.graph.numbered.steps
    fields: dict[str, Any] = {"recipe": shelved, "versions": versions, "befores": befores, "long": LONG}
    fields["steps"] = steps
    fields["order"] = {
        "recipe": shelved.name,
        "hash": shelved.graph.content_hash,
        "steps": [[step.node, step.text] for step in steps],
        "edges": shelved.graph.inner_edges,
    }
    fields["beside"] = json.loads(shelved.graph.extra or "{}").get("written", [])
    fields["named"] = _named_in_text(shelved.graph, fields["beside"])
    facts = latest(tools.records, RECIPE).get(shelved.name, {})
    fields["facts"] = mise_en_place.facts_of(shelved, facts, shelved.graph.language)
    put_in = recipe_pictures.of_all(tools.records).get(shelved.name, {})
    result = recipe_pictures.RESULT
    fields["put_in"], fields["pictures"] = (
        put_in,
        put_in | {result: recipe_pictures.of_result(shelved, put_in)},
    )
    places = [(str(step.node), f"{place}. {step.text}") for place, step in enumerate(steps, 1)]
    fields["places"] = [(result, ""), *places]
    stated = latest(tools.records, training.KIND)
    about = [("recipe", shelved.name), *(("skill", skill) for skill in facts.get("skills", []))]
    fields["training"] = [(of, name, stated.get(f"{of} {name}", {}).get("items", [])) for of, name in about]
    if visitor.may(Access.STUDY):
        states = {name: tools.records.state(name) for name in cooked(tools.records, shelved.name, EVIDENCE)}
        fields["contradicted"] = contradicted(shelved.graph, states)
        fields["texts"] = {step.node: step.text for step in steps}
        fields["category_numbers"] = {category.name: category.number for category in CATEGORIES}
    return render(request, "desk/recipe.html", visitor=visitor, **fields)


def _named_in_text(graph: Graph, beside: list[list[str]]) -> dict[str, list[str]]:
    """Return tools and ingredients that the text names; they count only once somebody states them."""
    spans = [(step, span) for step in graph.steps for span in step.spans if span.kind == "tool"]
    tools = {step.label[span.start : span.end].lower() for step, span in spans}
    named = [text.replace(",", " ") for kind, text in beside if kind == "ingredient"]
    return {"tools": sorted(tools), "ingredients": named}


def recipe_script(
    request: Request,
    tools: Tools,
    visitor: Asking,
    recipe: str,
    strategy: Literal["normal", "disordered"] = "disordered",
    seed: Annotated[int, Query(ge=0, le=2**53)] = 1,
) -> Response:
    """Show the script that a session with this seed would get, to print; nothing is saved."""
    drawn = frozen(tools.shelf.get(recipe), strategy=strategy, display="steps", seed=seed)
    errors = {
        error["error_id"]: {**error["fields"], "text": "", "planned": True, "removed": False}
        for error in drawn["planned"]
    }
    return printed(request, visitor, cast("State", {"recording": drawn, "errors": errors}))


ROUTES = [
    Route("/desk/recipes", recipes, Access.OPERATE, page=True),
    Route("/desk/recipes/{recipe}", recipe, Access.OPERATE, page=True),
    Route("/desk/recipes/{recipe}/script", recipe_script, Access.OPERATE, page=True),
]

"""The desk's pages of recipes: the shelf, one recipe, a script of it to print."""

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
"""Recipes of a page; recordings, the newest, that are looked through for edges they contradict."""
SORTS: dict[str, Callable[[Recipe], Any]] = {
    "title": lambda one: one.title.lower(),
    "steps": lambda one: (len(one.graph.steps), one.title),
    "orders": lambda one: (one.total is None, one.total or 0, one.title),
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
    """The recipes on the shelf, searched, filtered and sorted, a page at a time, and those that cannot be used."""
    everything = tools.shelf.everything()
    stated = latest(tools.records, RECIPE)
    wanted = {"heating": heating, "skills": skills, "tools": with_tools}

    def fits(one: Recipe) -> bool:
        facts = stated.get(one.name, {})
        said = " ".join([one.name, one.title, *(step.text for step in one.graph.steps)]).lower()
        has_words = all(word in said for word in q.lower().split())
        return has_words and all(not word or word in facts.get(fact, []) for fact, word in wanted.items())

    usable = [one for one in everything if not isinstance(one, UnusableRecipe)]
    found = [one for one in usable if fits(one)]
    found.sort(key=SORTS[sort])
    said = {
        fact: sorted({word for one in usable for word in stated.get(one.name, {}).get(fact, [])})
        for fact in OF_RECIPES
    }
    put_in = recipe_pictures.of_all(tools.records)
    usable = [found for found in everything if not isinstance(found, UnusableRecipe)]
    fields = {
        "line_kinds": LINE_KINDS,
        "cards": {
            found.name: recipe_pictures.of_result(found, put_in.get(found.name, {})) for found in usable
        },
        "recipes": found[(page - 1) * PAGE : page * PAGE],
        "count": len(found),
        "page": page,
        "pages": max(1, -(-len(found) // PAGE)),
        "chosen": {"q": q, **wanted, "sort": sort},
        "facts": said,
        "sorts": tuple(SORTS),
        "unusable": [found for found in everything if isinstance(found, UnusableRecipe)],
        "numbers": {row["graph_hash"]: row["version"] for row in tools.records.rows(tables.recipe)},
    }
    return render(request, "desk/recipes.html", visitor=visitor, **fields)


def recipe(request: Request, tools: Tools, visitor: Asking, recipe: str) -> Response:
    """One recipe: its steps with what each waits for, its versions, a script to print."""
    found = tools.shelf.get(recipe)
    table = tables.recipe
    versions = tools.records.rows(table, table.c.name == found.name, order=table.c.version.desc())
    befores: dict[int, list[int]] = {}
    for before, after in found.graph.inner_edges:
        befores.setdefault(after, []).append(before)
    steps = found.graph.numbered.steps
    fields: dict[str, Any] = {"recipe": found, "versions": versions, "befores": befores, "long": LONG}
    fields["steps"] = steps
    fields["order"] = {
        "recipe": found.name,
        "hash": found.graph.content_hash,
        "steps": [[step.node, step.text] for step in steps],
        "edges": found.graph.inner_edges,
    }
    fields["beside"] = json.loads(found.graph.extra or "{}").get("written", [])
    fields["found"] = _in_the_text(found.graph, fields["beside"])
    facts = latest(tools.records, RECIPE).get(found.name, {})
    fields["facts"] = mise_en_place.facts_of(found, facts, found.graph.language)
    put_in = recipe_pictures.of_all(tools.records).get(found.name, {})
    result = recipe_pictures.RESULT
    fields["put_in"], fields["pictures"] = put_in, put_in | {result: recipe_pictures.of_result(found, put_in)}
    places = [(str(step.node), f"{place}. {step.text}") for place, step in enumerate(steps, 1)]
    fields["places"] = [(result, ""), *places]
    stated = latest(tools.records, training.KIND)
    about = [("recipe", found.name), *(("skill", skill) for skill in facts.get("skills", []))]
    fields["training"] = [(of, name, stated.get(f"{of} {name}", {}).get("items", [])) for of, name in about]
    if visitor.may(Access.STUDY):
        states = {name: tools.records.state(name) for name in cooked(tools.records, found.name, EVIDENCE)}
        fields["contradicted"] = contradicted(found.graph, states)
        fields["texts"] = {step.node: step.text for step in steps}
        fields["category_numbers"] = {category.name: category.number for category in CATEGORIES}
    return render(request, "desk/recipe.html", visitor=visitor, **fields)


def _in_the_text(graph: Graph, beside: list[list[str]]) -> dict[str, list[str]]:
    """What the text itself names, to be looked over and stated: nothing of it counts before."""
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
    """A script of a recipe to print, as a session with this seed would be given it; nothing is kept."""
    drawn = frozen(tools.shelf.get(recipe), strategy=strategy, display="steps", seed=seed)
    errors = {
        one["error_id"]: {**one["fields"], "text": "", "planned": True, "removed": False}
        for one in drawn["planned"]
    }
    return printed(request, visitor, cast("State", {"recording": drawn, "errors": errors}))


ROUTES = [
    Route("/desk/recipes", recipes, Access.OPERATE, page=True),
    Route("/desk/recipes/{recipe}", recipe, Access.OPERATE, page=True),
    Route("/desk/recipes/{recipe}/script", recipe_script, Access.OPERATE, page=True),
]

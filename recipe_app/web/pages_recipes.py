"""The desk's pages of recipes: the shelf, one recipe, a script of it to print."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from fastapi import Query, Request
from fastapi.responses import Response

from recipe_app.cooking import training
from recipe_app.cooking.choosing import frozen
from recipe_app.exchange.stated_facts import RECIPE, latest
from recipe_app.graphs.model import Graph
from recipe_app.graphs.text.plain_lines import LINE_KINDS
from recipe_app.graphs.text.recipe_text import LONG
from recipe_app.people.roles import Access
from recipe_app.store import tables
from recipe_app.store.shelf import UnusableRecipe
from recipe_app.web.access import Asking, Route, Tools
from recipe_app.web.pages import printed, render


def recipes(request: Request, tools: Tools, visitor: Asking) -> Response:
    """The recipes on the shelf, and those that cannot be used."""
    everything = tools.shelf.everything()
    fields = {
        "line_kinds": LINE_KINDS,
        "recipes": [found for found in everything if not isinstance(found, UnusableRecipe)],
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
    fields["facts"] = latest(tools.records, RECIPE).get(found.name, {})
    stated = latest(tools.records, training.KIND)
    about = [("recipe", found.name), *(("skill", skill) for skill in fields["facts"].get("skills", []))]
    fields["training"] = [
        (of, name, stated.get(training.subject_of(of, name), {}).get("items", [])) for of, name in about
    ]
    return render(request, "desk/recipe.html", visitor=visitor, **fields)


def _in_the_text(graph: Graph, beside: list[list[str]]) -> dict[str, list[str]]:
    """What the text itself names, to be looked over and stated: nothing of it counts before."""
    tools = {
        step.label[s.start : s.end].lower() for step in graph.steps for s in step.spans if s.kind == "tool"
    }
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
    return printed(request, visitor, {"recording": drawn, "errors": errors})


ROUTES = [
    Route("/desk/recipes", recipes, Access.OPERATE, page=True),
    Route("/desk/recipes/{recipe}", recipe, Access.OPERATE, page=True),
    Route("/desk/recipes/{recipe}/script", recipe_script, Access.OPERATE, page=True),
]

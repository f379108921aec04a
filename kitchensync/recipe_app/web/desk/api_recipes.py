"""The desk's recipes over JSON: import, preview and write, order of steps, wordings, pictures, export."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from kitchensync.operations.errors import NotNow
from kitchensync.recipe_app.cooking import recipe_pictures
from kitchensync.recipe_app.cooking.collaborators import Collaborators
from kitchensync.recipe_app.people.roles import Access
from kitchensync.recipe_app.store.shelf import Recipe, shelve
from kitchensync.recipe_app.web.bodies import NewRecipe, NewWording, OrderEdges, WrittenRecipe
from kitchensync.recipe_app.web.desk.pages import attachment
from kitchensync.recipe_app.web.door.access import Asking, JsonObject, Route, Tools
from kitchensync.recipe_app.web.door.request_bodies import RequestBody, spool
from kitchensync.recipe_app.web.i18n import words_of
from kitchensync.task_graphs.formats.by_name import (
    TEXTS,
    given_back,
    kind_of,
    parse_graph,
    remembering_layout,
    written_graph,
    written_lines,
)
from kitchensync.task_graphs.model import Graph
from kitchensync.task_graphs.order.drawing import draw
from kitchensync.task_graphs.order.edit import order_facts, with_inner_edges
from kitchensync.task_graphs.text.recipe_text import in_written_order
from kitchensync.task_graphs.text.wordings import with_wording

PICTURE = RequestBody(24 << 20, ("image",), at_once=2)
"""A photograph as a phone takes it."""


def _shelve(tools: Collaborators, name: str, graph: Graph, *, actor: str, **origin: str) -> dict[str, Any]:
    shelve(tools.records, tools.shelf, name, graph, actor=actor, **origin)
    return {"recipe": name, "steps": len(graph.steps), "graph_hash": graph.content_hash}


def add_recipe(tools: Tools, visitor: Asking, body: NewRecipe) -> JsonObject:
    """Put a recipe on the shelf: a task graph in any known format, or a text in written order."""
    kind = kind_of(body.file_name, body.text)
    if kind == "text":
        graph = written_graph(body.text, name=body.file_name)
    else:
        graph = parse_graph(body.text, name=body.file_name, kind=kind)
    graph = in_written_order(graph) if kind in TEXTS else remembering_layout(graph, body.text, kind)
    return _shelve(tools, body.file_name.rsplit(".", 1)[0], graph, actor=visitor.actor, kind=kind)


def preview(body: WrittenRecipe) -> JsonObject:
    """Report the kind of each non-empty line of a text and its steps; nothing is saved."""
    lines_with_steps = written_lines(body.text, name=body.file_name, kinds=body.kinds)
    lines = [
        {
            "number": line.number,
            "kind": line.kind,
            "text": line.text,
            "steps": [[step.node, step.text] for step in steps],
        }
        for line, steps in lines_with_steps
    ]
    return {"lines": lines, "steps": sum(len(steps) for _, steps in lines_with_steps)}


def write_recipe(tools: Tools, visitor: Asking, body: WrittenRecipe) -> JsonObject:
    """Save a recipe written as text, its steps in written order."""
    graph = written_graph(body.text, name=body.file_name, kinds=body.kinds)
    return _shelve(tools, body.file_name.rsplit(".", 1)[0], graph, actor=visitor.actor, kind="text")


def check_order(request: Request, tools: Tools, recipe: str, body: OrderEdges) -> JsonObject:
    """Report a recipe's order with these edges, and where to draw its steps; nothing is saved."""
    graph = with_inner_edges(_edited(tools, recipe, body).graph, body.edges)
    facts = order_facts(graph)
    return {
        "cycle": facts.cycle,
        "redundant": facts.redundant,
        "count": "" if facts.total is None else words_of(request)("choose.orders", count=facts.total),
        "orders": facts.orders,
        **draw(graph).as_json(),
    }


def keep_order(tools: Tools, visitor: Asking, recipe: str, body: OrderEdges) -> JsonObject:
    """Save the edges of a recipe as its newest version; the same edges are the same version."""
    edited = _edited(tools, recipe, body)
    graph = with_inner_edges(edited.graph, body.edges)
    return _shelve(tools, edited.name, graph, actor=visitor.actor, edited="order")


def _edited(tools: Collaborators, recipe: str, body: OrderEdges) -> Recipe:
    """Return the recipe to edit. Raises NotNow if it changed since the page was loaded."""
    shelved = tools.shelf.get(recipe)
    if shelved.graph.content_hash != body.seen:
        raise NotNow("this recipe was changed since the page was loaded; load it again")
    return shelved


def export_recipe(tools: Tools, recipe: str) -> Response:
    """Download a recipe: a published graph in its original layout, any other as `graph/1`."""
    shelved = tools.shelf.get(recipe)
    return attachment(given_back(shelved.graph), "application/json", f"{shelved.name}.json")


def add_wording(tools: Tools, visitor: Asking, recipe: str, body: NewWording) -> JsonObject:
    """Add the wording of a recipe in another language, as a new version that tablets offer."""
    shelved = tools.shelf.get(recipe)
    graph = with_wording(shelved.graph, body.language, body.title, body.lines.splitlines(), own=body.own)
    kept = _shelve(tools, shelved.name, graph, actor=visitor.actor, language=body.language)
    return {"recipe": shelved.name, "language": body.language, "graph_hash": kept["graph_hash"]}


async def put_picture(request: Request, tools: Tools, visitor: Asking, recipe: str, place: str) -> JsonObject:
    """Set the picture of a step or of the result: re-encoded, small, without metadata."""
    shelved = tools.shelf.get(recipe)
    with tempfile.NamedTemporaryFile(dir=tools.folders.data, prefix=".picture-") as upload:
        await spool(request, upload, tools.folders.data)
        content = await run_in_threadpool(recipe_pictures.small_jpeg, Path(upload.name))
    sha256 = await run_in_threadpool(
        recipe_pictures.put, tools.records, shelved, place, content, actor=visitor.actor
    )
    return {"address": recipe_pictures.address_of(sha256), "bytes": len(content)}


def take_picture_away(tools: Tools, visitor: Asking, recipe: str, place: str) -> JsonObject:
    """Remove the picture of a step or of the result."""
    recipe_pictures.take_away(tools.records, tools.shelf.get(recipe), place, actor=visitor.actor)
    return {"address": ""}


ROUTES = [
    Route("/api/v1/desk/recipes", add_recipe, Access.STUDY, "POST"),
    Route("/api/v1/desk/recipes/preview", preview, Access.STUDY, "POST"),
    Route("/api/v1/desk/recipes/written", write_recipe, Access.STUDY, "POST"),
    Route("/api/v1/desk/recipes/{recipe}/order/check", check_order, Access.STUDY, "POST"),
    Route("/api/v1/desk/recipes/{recipe}/order", keep_order, Access.STUDY, "POST"),
    Route("/api/v1/desk/recipes/{recipe}/export", export_recipe, Access.STUDY),
    Route("/api/v1/desk/recipes/{recipe}/pictures/{place}", put_picture, Access.STUDY, "PUT", body=PICTURE),
    Route("/api/v1/desk/recipes/{recipe}/pictures/{place}/remove", take_picture_away, Access.STUDY, "POST"),
    Route("/api/v1/desk/recipes/{recipe}/wordings", add_wording, Access.STUDY, "POST"),
]

"""The desk's recipes over JSON: put on the shelf, written after a preview, ordered, given back."""

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
"""A photograph as telephones take them."""


def _shelve(tools: Collaborators, name: str, graph: Graph, *, actor: str, **said: str) -> dict[str, Any]:
    shelve(tools.records, tools.shelf, name, graph, actor=actor, **said)
    return {"recipe": name, "steps": len(graph.steps), "graph_hash": graph.content_hash}


def add_recipe(tools: Tools, visitor: Asking, body: NewRecipe) -> JsonObject:
    """Put a recipe on the shelf: a task graph of any known form, or a text, in the order as written."""
    kind = kind_of(body.file_name, body.text)
    if kind == "text":
        graph = written_graph(body.text, name=body.file_name)
    else:
        graph = parse_graph(body.text, name=body.file_name, kind=kind)
    graph = in_written_order(graph) if kind in TEXTS else remembering_layout(graph, body.text, kind)
    return _shelve(tools, body.file_name.rsplit(".", 1)[0], graph, actor=visitor.actor, kind=kind)


def preview(body: WrittenRecipe) -> JsonObject:
    """Report what every filled line of a text is taken for, and the steps that it becomes; nothing is kept."""
    found = written_lines(body.text, name=body.file_name, kinds=body.kinds)
    lines = [
        {
            "number": line.number,
            "kind": line.kind,
            "text": line.text,
            "steps": [[step.node, step.text] for step in steps],
        }
        for line, steps in found
    ]
    return {"lines": lines, "steps": sum(len(steps) for _, steps in found)}


def write_recipe(tools: Tools, visitor: Asking, body: WrittenRecipe) -> JsonObject:
    """Keep a recipe that was written as text: its steps in the order as written."""
    graph = written_graph(body.text, name=body.file_name, kinds=body.kinds)
    return _shelve(tools, body.file_name.rsplit(".", 1)[0], graph, actor=visitor.actor, kind="text")


def check_order(request: Request, tools: Tools, recipe: str, body: OrderEdges) -> JsonObject:
    """Report what these edges would make of a recipe, and where to draw its steps; nothing is kept."""
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
    """Keep the edges of a recipe as its newest version; the same edges are the same version."""
    found = _edited(tools, recipe, body)
    graph = with_inner_edges(found.graph, body.edges)
    return _shelve(tools, found.name, graph, actor=visitor.actor, edited="order")


def _edited(tools: Collaborators, recipe: str, body: OrderEdges) -> Recipe:
    """Find what is edited. Raises NotNow where it is no longer what was seen."""
    found = tools.shelf.get(recipe)
    if found.graph.content_hash != body.seen:
        raise NotNow("this recipe was changed since the page was loaded; load it again")
    return found


def export_recipe(tools: Tools, recipe: str) -> Response:
    """Give a recipe as a file: a published graph in the layout in which it came, any other as `graph/1`."""
    found = tools.shelf.get(recipe)
    return attachment(given_back(found.graph), "application/json", f"{found.name}.json")


def add_wording(tools: Tools, visitor: Asking, recipe: str, body: NewWording) -> JsonObject:
    """Say the steps of a recipe in one more language: a new version of it, which tablets offer."""
    found = tools.shelf.get(recipe)
    graph = with_wording(found.graph, body.language, body.title, body.lines.splitlines(), own=body.own)
    kept = _shelve(tools, found.name, graph, actor=visitor.actor, language=body.language)
    return {"recipe": found.name, "language": body.language, "graph_hash": kept["graph_hash"]}


async def put_picture(request: Request, tools: Tools, visitor: Asking, recipe: str, place: str) -> JsonObject:
    """Put a picture at a step of a recipe, or at its result: made anew, small, without what else was in the file."""
    found = tools.shelf.get(recipe)
    with tempfile.NamedTemporaryFile(dir=tools.folders.data, prefix=".picture-") as kept:
        await spool(request, kept, tools.folders.data)
        content = await run_in_threadpool(recipe_pictures.small_jpeg, Path(kept.name))
    sha256 = await run_in_threadpool(
        recipe_pictures.put, tools.records, found, place, content, actor=visitor.actor
    )
    return {"address": recipe_pictures.address_of(sha256), "bytes": len(content)}


def take_picture_away(tools: Tools, visitor: Asking, recipe: str, place: str) -> JsonObject:
    """Show no picture at this place any more."""
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

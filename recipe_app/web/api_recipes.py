"""The desk's recipes over JSON: put on the shelf as a file, written as text after a preview, said in a language."""

from __future__ import annotations

from typing import Any

from recipe_app.cooking.collaborators import Collaborators
from recipe_app.errors import BadGraph
from recipe_app.graphs.formats.by_name import TEXTS, kind_of, parse_graph, written_graph, written_lines
from recipe_app.graphs.formats.graph_json import format_graph_json
from recipe_app.graphs.model import Graph
from recipe_app.graphs.scoring.validate import check_graph
from recipe_app.graphs.text.recipe_text import in_written_order
from recipe_app.graphs.text.wordings import with_wording
from recipe_app.people.roles import Access
from recipe_app.store.versions import keep_version
from recipe_app.web.access import Asking, Route, Tools
from recipe_app.web.bodies import NewRecipe, NewWording, WrittenRecipe


def _shelve(tools: Collaborators, name: str, graph: Graph, *, actor: str, **said: str) -> dict[str, Any]:
    """Put a graph on the shelf as the newest version of a recipe. Raises BadGraph where it cannot be cooked."""
    for finding in check_graph(graph):
        if finding.level == "error":
            raise BadGraph(graph.name, finding.place, f"{finding.text}; {finding.fix}")
    tools.shelf.put(name, format_graph_json(graph))
    keep_version(tools.records, tools.shelf.get(name), actor=actor)
    tools.records.note("shelved", graph.content_hash, {"name": name, **said}, actor=actor)
    return {"recipe": name, "steps": len(graph.steps), "graph_hash": graph.content_hash}


def _stem(file_name: str) -> str:
    return file_name.rpartition(".")[0] or file_name


def add_recipe(tools: Tools, visitor: Asking, body: NewRecipe) -> dict[str, Any]:
    """Put a recipe on the shelf: a task graph of any known form, or a text, in the order as written."""
    kind = kind_of(body.file_name, body.text)
    if kind == "text":
        graph = written_graph(body.text, name=body.file_name)
    else:
        graph = parse_graph(body.text, name=body.file_name, kind=kind)
    graph = in_written_order(graph) if kind in TEXTS else graph
    return _shelve(tools, _stem(body.file_name), graph, actor=visitor.actor, kind=kind)


def preview(body: WrittenRecipe) -> dict[str, Any]:
    """Say what every filled line of a text is taken for, and the steps that it becomes; nothing is kept."""
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


def write_recipe(tools: Tools, visitor: Asking, body: WrittenRecipe) -> dict[str, Any]:
    """Keep a recipe that was written as text: its steps in the order as written."""
    graph = written_graph(body.text, name=body.file_name, kinds=body.kinds)
    return _shelve(tools, _stem(body.file_name), graph, actor=visitor.actor, kind="text")


def add_wording(tools: Tools, visitor: Asking, recipe: str, body: NewWording) -> dict[str, Any]:
    """Say the steps of a recipe in one more language: a new version of it, which tablets offer."""
    found = tools.shelf.get(recipe)
    graph = with_wording(found.graph, body.language, body.title, body.lines.splitlines(), own=body.own)
    kept = _shelve(tools, found.name, graph, actor=visitor.actor, language=body.language)
    return {"recipe": found.name, "language": body.language, "graph_hash": kept["graph_hash"]}


ROUTES = [
    Route("/api/v1/desk/recipes", add_recipe, Access.STUDY, "POST"),
    Route("/api/v1/desk/recipes/preview", preview, Access.STUDY, "POST"),
    Route("/api/v1/desk/recipes/written", write_recipe, Access.STUDY, "POST"),
    Route("/api/v1/desk/recipes/{recipe}/wordings", add_wording, Access.STUDY, "POST"),
]

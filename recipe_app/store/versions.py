"""Versions of recipes: a graph is kept when it is put on the shelf or first used, whatever happens to its file."""

from __future__ import annotations

from sqlalchemy import select

from recipe_app.errors import BadGraph
from recipe_app.graphs.formats.graph_json import format_graph_json
from recipe_app.graphs.model import Graph
from recipe_app.graphs.scoring.validate import check_graph
from recipe_app.store import tables
from recipe_app.store.app_records import AppRecords
from recipe_app.store.shelf import Recipe, Shelf


def shelve(records: AppRecords, shelf: Shelf, name: str, graph: Graph, *, actor: str, **said: str) -> None:
    """Put a graph on the shelf as the newest version of a recipe. Raises BadGraph where it cannot be cooked."""
    for finding in check_graph(graph):
        if finding.level == "error":
            raise BadGraph(graph.name, finding.place, f"{finding.text}; {finding.fix}")
    shelf.put(name, format_graph_json(graph))
    keep_version(records, shelf.get(name), actor=actor)
    records.note("shelved", graph.content_hash, {"name": name, **said}, actor=actor)


def keep_version(records: AppRecords, recipe: Recipe, *, actor: str) -> None:
    """Note a version of a recipe the first time it is seen; the same graph is the same version."""
    table, graph_hash = tables.recipe, recipe.graph.content_hash
    with records.changing() as connection:
        if connection.execute(select(table.c.name).where(table.c.graph_hash == graph_hash)).first():
            return
        versions = connection.execute(select(table.c.version).where(table.c.name == recipe.name)).scalars()
        body = {
            "name": recipe.name,
            "title": recipe.title,
            "version": max(versions, default=0) + 1,
            "graph_hash": graph_hash,
            "graph": format_graph_json(recipe.graph),
        }
        records.note_within(connection, "recipe", graph_hash, body, actor=actor)

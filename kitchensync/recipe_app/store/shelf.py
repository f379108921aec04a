"""The recipes on the shelf: every task-graph file of a folder, read again when it changes."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import select

from kitchensync.operations.errors import BadOperation
from kitchensync.recipe_app.store import tables
from kitchensync.recipe_app.store.app_records import AppRecords
from kitchensync.storage.options.outputs import write_output
from kitchensync.task_graphs.errors import BadGraph, NotFound, RecipeError, TooManyStates
from kitchensync.task_graphs.formats.by_name import kind_of, parse_graph, remembering_layout
from kitchensync.task_graphs.formats.graph_files import read_text
from kitchensync.task_graphs.formats.graph_json import format_graph_json
from kitchensync.task_graphs.model import Graph
from kitchensync.task_graphs.order.orders import count_orders
from kitchensync.task_graphs.scoring.validate import check_graph

OWN_RECIPES = Path(__file__).resolve().parents[2] / "examples" / "recipes"
MOST_RECIPES = 500  # every request checks each file for changes

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True)
class Recipe:
    """A usable recipe; `total` is the number of its orders, None if too many to count."""

    name: str
    title: str
    graph: Graph
    total: int | None

    @property
    def titles(self) -> dict[str, str]:
        """The titles by language of the wordings; empty if no language is stated."""
        if not self.graph.language:
            return {}
        others = {wording.language: wording.title or self.title for wording in self.graph.wordings}
        return {self.graph.language: self.title, **others}


@dataclass(frozen=True)
class UnusableRecipe:
    """A file that is not a usable recipe, and why in one line."""

    file: str
    error: str


class Shelf:
    """The recipes of a folder by name (the file name without `.json`), and the uploaded ones.

    Uploaded recipes are in `own`, a folder of the app; they take precedence over a file of the same name.
    """

    def __init__(self, folder: Path, own: Path | None = None) -> None:
        self.folder, self.own = folder, own
        self._read: dict[Path, tuple[tuple[int, int], Recipe | UnusableRecipe]] = {}

    def everything(self) -> list[Recipe | UnusableRecipe]:
        """Return all files of the folder, usable or not, by name."""
        files: dict[str, Path] = {}
        for folder in (self.folder, *([self.own] if self.own else [])):
            files |= {path.stem: path for path in folder.glob("*.json") if _NAME.fullmatch(path.stem)}
        recipes = []
        for _, path in sorted(files.items())[:MOST_RECIPES]:
            status = path.stat()
            key = (status.st_mtime_ns, status.st_size)
            if path not in self._read or self._read[path][0] != key:
                self._read[path] = (key, _load(path))
            recipes.append(self._read[path][1])
        return recipes

    def put(self, name: str, text: str) -> None:
        """Save an uploaded recipe. Raises BadOperation for an invalid file name."""
        if self.own is None or not _NAME.fullmatch(name):
            raise BadOperation("a recipe's name has letters, digits, dot, underscore and hyphen, at most 64")
        self.own.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_output(self.own / f"{name}.json", text.encode(), force=True)

    def recipes(self) -> list[Recipe]:
        """Return the usable recipes."""
        return [recipe for recipe in self.everything() if isinstance(recipe, Recipe)]

    def get(self, name: str) -> Recipe:
        """Return a recipe. The name is compared with the files and never used as a path. Raises NotFound."""
        for recipe in self.recipes():
            if recipe.name == name:
                return recipe
        known = ", ".join(recipe.name for recipe in self.recipes())[:400] or ("none",)
        raise NotFound("no recipe {name!r}; there are: {known}", name=name[:80], known=known)


def _load(path: Path) -> Recipe | UnusableRecipe:
    total: int | None = None
    try:
        text = read_text(path)
        kind = kind_of(path.name, text)
        graph = remembering_layout(parse_graph(text, name=path.name, kind=kind), text, kind)
        for finding in check_graph(graph):
            if finding.level == "error":
                return UnusableRecipe(path.name, f"{finding.place}: {finding.text}; {finding.fix}")
        title = graph.recipe.title[:1].upper() + graph.recipe.title[1:]
        with suppress(TooManyStates):
            total = count_orders(graph)
        return Recipe(path.stem, title or title_of(path.stem), graph, total)
    except RecipeError as error:
        return UnusableRecipe(path.name, str(error))


def title_of(name: str) -> str:
    """Return a file name as a title: `tea_and_toast` is "Tea and toast"."""
    words = re.sub(r"[_-]+", " ", name).strip()
    return words[:1].upper() + words[1:]


def shelve(records: AppRecords, shelf: Shelf, name: str, graph: Graph, *, actor: str, **origin: str) -> None:
    """Save a graph as the newest version of a recipe. Raises BadGraph if it has errors."""
    for finding in check_graph(graph):
        if finding.level == "error":
            raise BadGraph(graph.name, finding.place, f"{finding.text}; {finding.fix}")
    shelf.put(name, format_graph_json(graph))
    keep_version(records, shelf.get(name), actor=actor)
    records.note("shelved", graph.content_hash, {"name": name, **origin}, actor=actor)


def keep_version(records: AppRecords, recipe: Recipe, *, actor: str) -> None:
    """Log a version of a recipe the first time it is used; the same graph is the same version."""
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

"""Task graphs of an imported collection: to judge its recordings, and as recipes to cook."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any, TypedDict

from kitchensync.recipe_app.exchange.published import TakenCollection
from kitchensync.recipe_app.store.app_records import AppRecords
from kitchensync.recipe_app.store.shelf import Shelf, shelve
from kitchensync.task_graphs.errors import RecipeError
from kitchensync.task_graphs.formats.by_name import remembering_layout
from kitchensync.task_graphs.formats.captaincook4d import parse_captaincook4d
from kitchensync.task_graphs.scoring.judge import Performed, Prerequisites, match_texts


class CollectionGraphs:
    """The graphs and step texts of a collection, which never change and are read once."""

    def __init__(self, collection: str, records: AppRecords) -> None:
        self._collection, self._records = collection, records
        self._orders: dict[str, Prerequisites | None] = {}

    @cached_property
    def _held(self) -> tuple[dict[int, str], dict[str, str]]:
        body = next(op["body"] for op in self._records.ops(self._collection) if op["kind"] == "collection")
        files = body["as_they_stand"]
        return dict(body["step_texts"]), {
            path: text for path, text in files.items() if "task_graphs/" in path
        }

    def order(self, source: str) -> Prerequisites | None:
        """Return the order of a graph file, such as `tea.json`; None if it is missing or cyclic."""
        if source not in self._orders:
            self._orders[source] = None
            if (text := self._held[1].get(f"task_graphs/{source}")) is not None:
                with suppress(RecipeError):
                    self._orders[source] = Prerequisites(parse_captaincook4d(text, name=source))
        return self._orders[source]

    def steps_of_graph(
        self, order: Prerequisites, annotated: dict[str, Any], done: list[Performed]
    ) -> list[Performed]:
        """Return runs with the graph's steps in place of the entries, matched by the text of their step id."""
        texts = self._held[0]
        entries = {node: entry["step_id"] for node, entry in enumerate(annotated["entries"], start=1)}
        nodes = match_texts(order, (texts.get(entries.get(step.node or 0, -1), "") for step in done))
        return [Performed(node, step.start_s, step.end_s) for node, step in zip(nodes, done, strict=True)]


class ShelvedGraphs(TypedDict):
    """The task graphs of a folder as recipes."""

    recipes: list[str]
    "New recipes."
    unusable: list[str]


class ImportedCollection(TakenCollection, ShelvedGraphs):
    """The object `annotations-import/1`."""


def shelve_graphs(
    files: Mapping[str, str], records: AppRecords, shelf: Shelf, *, actor: str
) -> ShelvedGraphs:
    """Put the task graphs of a folder on the shelf as recipes; existing names are skipped."""
    known, added, unusable = {recipe.name for recipe in shelf.recipes()}, list[str](), list[str]()
    for path, text in sorted(files.items()):
        name = path.removeprefix("task_graphs/").removesuffix(".json")
        if not path.startswith("task_graphs/") or name in known:
            continue
        try:
            graph = parse_captaincook4d(text, name=f"{name}.json")
            kept = remembering_layout(graph, text, "captaincook4d")
            shelve(records, shelf, name, kept, actor=actor, kind="captaincook4d")
            added.append(name)
        except RecipeError as error:
            unusable.append(f"{path}: {error}")
    return {"recipes": added, "unusable": unusable}

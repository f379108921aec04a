"""Graph files of ProMQA-Assembly: one file with many toys, each the saved state of a graph editor.

`{"metadata": {..}, "examples": [{"toy_id", "nodes": [{"id", "data": {"label", "checked"}, "position"}], "edges":
[{"id", "source", "target"}], ..}]}`. Ids are strings, "0" is the start and "100" the end. Other data of the editor
(positions, sizes, pictures, videos) is kept and written back in its place.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any

from kitchensync.task_graphs.formats.strict_json import NODE_ID, Reader, dump, load
from kitchensync.task_graphs.model import END, START, Edge, Graph, Link, RecipeVersion, Step

START_ID, END_ID = "0", "100"

Layout = tuple[int | None, bool, str]
LAYOUTS: tuple[Layout, ...] = tuple(
    (indent, ascii_only, end)
    for indent in (None, 1, 2, 4)
    for ascii_only in (True, False)
    for end in ("", "\n")
)
"""Possible layouts of a file: indent, ASCII escapes, end of the file."""


@dataclass(frozen=True)
class AssemblyFile:
    """A file of graphs; `rest` is the document without the graphs, as JSON."""

    graphs: tuple[Graph, ...]
    rest: str


def parse_assembly(text: str, *, name: str) -> AssemblyFile:
    """Parse a file; each graph is named after its toy. Raises BadGraph."""
    read = Reader(name)
    document = read.object(load(text, name), "")
    examples = read.array(document.get("examples"), "examples")
    graphs = tuple(_graph(read, value, f"examples[{number}]") for number, value in enumerate(examples))
    return AssemblyFile(graphs, dump({**document, "examples": []}))


def _graph(read: Reader, value: Any, place: str) -> Graph:
    value = read.object(value, place)
    toy = read.text(value.get("toy_id"), f"{place}: toy_id")
    nodes = [
        read.object(node, f"{place}: nodes") for node in read.array(value.get("nodes"), f"{place}: nodes")
    ]
    read.number_of_steps(len(nodes), f"{place}: nodes")
    numbers = _numbers([read.text(node.get("id"), f"{place}: id of a node") for node in nodes])
    if len(numbers) < len(nodes):
        raise read.fail(place, "two nodes with one id; give every step its own")
    links: dict[Edge, Link] = {}
    for edge in read.array(value.get("edges"), f"{place}: edges"):
        edge = read.object(edge, f"{place}: edges")
        for end in ("source", "target"):
            if read.text(edge.get(end), f"{place}: {end} of an edge") not in numbers:
                raise read.fail(f"{place}: edges", f"there is no node {edge[end]!r}")
        pair = (numbers[edge["source"]], numbers[edge["target"]])
        if pair in links:
            raise read.fail(f"{place}: edges", f"{list(pair)} appears twice; remove one")
        links[pair] = Link(pair, extra=dump({"assembly": edge}))
    return Graph(
        f"{toy}.json",
        tuple(_step(read, node, numbers[node["id"]], place) for node in nodes),
        tuple(links),
        links=tuple(links.values()),
        recipe=RecipeVersion(recipe=toy),
        extra=dump({"assembly": {**value, "nodes": [], "edges": []}}),
    )


def _numbers(ids: list[str]) -> dict[str, int]:
    """Return a node number for each id; ids that are not numbers get numbers after the largest one."""
    numbers = {id_: int(id_) for id_ in ids if NODE_ID.fullmatch(id_)}
    last = max([int(END_ID), *numbers.values()])
    for id_ in ids:
        if id_ not in numbers:
            last += 1
            numbers[id_] = last
    return numbers


def _step(read: Reader, node: dict[str, Any], number: int, place: str) -> Step:
    data = read.object(node.get("data"), f"{place}: data of node {node['id']}")
    terminal = {START_ID: START, END_ID: END}.get(node["id"])
    label = terminal or read.label(data.get("label"), f"{place}: node {node['id']}")
    return Step(number, label, extra=dump({"assembly": node}))


def format_assembly(graphs: Iterable[Graph], *, rest: str = "", layout: Layout = LAYOUTS[0]) -> str:
    """Write graphs as one file, with the data that they keep from such a file."""
    graphs = list(graphs)
    toys = [graph.recipe.recipe or graph.name.removesuffix(".json") for graph in graphs]
    document: dict[str, Any] = {"metadata": {"total": len(graphs), "toy_ids": toys}, "examples": []}
    if rest:
        document = json.loads(rest)
    examples: list[dict[str, Any]] = []
    for graph, toy in zip(graphs, toys, strict=True):
        ids = {step.node: _id(step) for step in graph.nodes}
        links = {link.edge: _kept(link.extra) for link in graph.links}
        edges: list[dict[str, Any]] = []
        for before, after in graph.edges:
            new = {"id": f"xy-edge__{ids[before]}-{ids[after]}", "source": ids[before], "target": ids[after]}
            edges.append(links.get((before, after)) or new)
        nodes = [_node(step, ids[step.node], place) for place, step in enumerate(graph.nodes)]
        examples.append({**(_kept(graph.extra) or {"toy_id": toy}), "nodes": nodes, "edges": edges})
    document["examples"] = examples
    indent, ascii_only, end = layout
    return json.dumps(document, indent=indent, ensure_ascii=ascii_only) + end


def layout_of(text: str, file: AssemblyFile) -> Layout | None:
    """Return the layout in which the file was written, or None."""
    for layout in LAYOUTS:
        if format_assembly(file.graphs, rest=file.rest, layout=layout) == text:
            return layout
    return None


def ticks(graph: Graph) -> dict[int, bool]:
    """Return for each node from such a file whether the step fastens with a screw."""
    kept = {step.node: _kept(step.extra) for step in graph.steps}
    return {node: bool(value.get("data", {}).get("checked")) for node, value in kept.items() if value}


def with_ticks(graph: Graph, fastened: Collection[int]) -> Graph:
    """Return a graph in which exactly these steps fasten with a screw."""
    nodes = []
    for place, step in enumerate(graph.nodes):
        node = _node(step, _id(step), place)
        ticked = {"assembly": {**node, "data": {**node["data"], "checked": step.node in fastened}}}
        extra = dump({**json.loads(step.extra or "{}"), **ticked})
        nodes.append(step if step.is_terminal else replace(step, extra=extra))
    return replace(graph, nodes=tuple(nodes))


def equal_ticks(first: Graph, second: Graph) -> float | None:
    """Return the share of steps with equal marks in both graphs; None if no step has a mark in both."""
    first_ticks, second_ticks = ticks(first), ticks(second)
    both = first_ticks.keys() & second_ticks.keys()
    return sum(first_ticks[node] == second_ticks[node] for node in both) / len(both) if both else None


def _kept(extra: str) -> dict[str, Any]:
    """Return the data that is kept from an assembly file."""
    kept: dict[str, Any] = json.loads(extra).get("assembly", {}) if extra else {}
    return kept


def _id(step: Step) -> str:
    new = {START: START_ID, END: END_ID}.get(step.label, str(step.node))
    if not step.is_terminal and new in (START_ID, END_ID):
        new = f"step-{new}"  # the format reserves both ids
    node_id: str = _kept(step.extra).get("id", new)
    return node_id


def _node(step: Step, node_id: str, place: int) -> dict[str, Any]:
    kept = _kept(step.extra)
    if not kept:
        return {
            "id": node_id,
            "data": {"label": step.label, "checked": False},
            "position": {"x": 0, "y": 100 * place},
        }
    if step.is_terminal or kept["data"].get("label") == step.label:
        return kept
    return {**kept, "data": {**kept["data"], "label": step.label}}

"""Graph files of ProMQA-Assembly: one file, many toys, each the saved state of a graph editor.

`{"metadata": {..}, "examples": [{"toy_id", "nodes": [{"id", "data": {"label", "checked"}, "position"}], "edges":
[{"id", "source", "target"}], ..}]}`, ids as text, "0" the start and "100" the end. Whatever else the editor saved
(positions, sizes, pictures, videos) is carried along and written back in its place.
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
"""Indent, ASCII escapes, what stands at the end of the file."""


@dataclass(frozen=True)
class AssemblyFile:
    """A file of graphs; `rest` is the document without them, as JSON."""

    graphs: tuple[Graph, ...]
    rest: str


def parse_assembly(text: str, *, name: str) -> AssemblyFile:
    """Parse a file; each graph is named after its toy. Raises BadGraph."""
    read = Reader(name)
    document = read.object(load(text, name), "")
    examples = read.array(document.get("examples"), "examples")
    graphs = tuple(_graph(read, one, f"examples[{number}]") for number, one in enumerate(examples))
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
            raise read.fail(f"{place}: edges", f"{list(pair)} stands twice; remove one")
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
    numbers = {one: int(one) for one in ids if NODE_ID.fullmatch(one)}
    following = max([int(END_ID), *numbers.values()])
    for one in ids:
        if one not in numbers:
            following += 1
            numbers[one] = following
    return numbers


def _step(read: Reader, node: dict[str, Any], number: int, place: str) -> Step:
    data = read.object(node.get("data"), f"{place}: data of node {node['id']}")
    terminal = {START_ID: START, END_ID: END}.get(node["id"])
    label = terminal or read.label(data.get("label"), f"{place}: node {node['id']}")
    return Step(number, label, extra=dump({"assembly": node}))


def format_assembly(graphs: Iterable[Graph], *, rest: str = "", layout: Layout = LAYOUTS[0]) -> str:
    """Write graphs as one file; what they carry from such a file is written back, the rest is made."""
    graphs = list(graphs)
    toys = [graph.recipe.recipe or graph.name.removesuffix(".json") for graph in graphs]
    made: dict[str, Any] = {"metadata": {"total": len(graphs), "toy_ids": toys}, "examples": []}
    document = json.loads(rest) if rest else made
    document["examples"] = [_example(graph, toy) for graph, toy in zip(graphs, toys, strict=True)]
    indent, ascii_only, end = layout
    return json.dumps(document, indent=indent, ensure_ascii=ascii_only) + end


def layout_of(text: str, file: AssemblyFile) -> Layout | None:
    """Find the layout in which writing the file gives `text` byte for byte, or None."""
    return next(
        (one for one in LAYOUTS if format_assembly(file.graphs, rest=file.rest, layout=one) == text), None
    )


def _example(graph: Graph, toy: str) -> dict[str, Any]:
    own = _own(graph.extra) or {"toy_id": toy}
    ids = {step.node: _id(step) for step in graph.nodes}
    links = {link.edge: _own(link.extra) for link in graph.links}
    edges: list[dict[str, Any]] = []
    for before, after in graph.edges:
        made = {"id": f"xy-edge__{ids[before]}-{ids[after]}", "source": ids[before], "target": ids[after]}
        edges.append(links.get((before, after)) or made)
    nodes = [_node(step, ids[step.node], place) for place, step in enumerate(graph.nodes)]
    return {**own, "nodes": nodes, "edges": edges}


def ticks(graph: Graph) -> dict[int, bool]:
    """Return, by node, whether a step fastens with a screw; of steps that come from such a file."""
    own = {step.node: _own(step.extra) for step in graph.steps}
    return {node: bool(one.get("data", {}).get("checked")) for node, one in own.items() if one}


def with_ticks(graph: Graph, fastened: Collection[int]) -> Graph:
    """Return a graph in which these steps fasten with a screw and no others."""
    nodes = []
    for place, step in enumerate(graph.nodes):
        node = _node(step, _id(step), place)
        own = {"assembly": {**node, "data": {**node["data"], "checked": step.node in fastened}}}
        told = dump({**json.loads(step.extra or "{}"), **own})
        nodes.append(step if step.is_terminal else replace(step, extra=told))
    return replace(graph, nodes=tuple(nodes))


def equal_ticks(first: Graph, second: Graph) -> float | None:
    """Return the share of steps that both mark alike as fastening; None where no step is marked in both."""
    ours, theirs = ticks(first), ticks(second)
    both = ours.keys() & theirs.keys()
    return sum(ours[node] == theirs[node] for node in both) / len(both) if both else None


def _own(extra: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(extra).get("assembly", {}) if extra else {}
    return found


def _id(step: Step) -> str:
    made = {START: START_ID, END: END_ID}.get(step.label, str(step.node))
    if not step.is_terminal and made in (START_ID, END_ID):
        made = f"step-{made}"  # the two ids that the format keeps for itself
    own: str = _own(step.extra).get("id", made)
    return own


def _node(step: Step, node_id: str, place: int) -> dict[str, Any]:
    own = _own(step.extra)
    if not own:
        return {
            "id": node_id,
            "data": {"label": step.label, "checked": False},
            "position": {"x": 0, "y": 100 * place},
        }
    if step.is_terminal or own["data"].get("label") == step.label:
        return own
    return {**own, "data": {**own["data"], "label": step.label}}

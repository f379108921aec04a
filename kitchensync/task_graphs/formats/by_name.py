"""Detection of formats, and parsing and writing of any format by its name."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace

from kitchensync.task_graphs.errors import BadGraph
from kitchensync.task_graphs.formats import assembly, captaincook4d
from kitchensync.task_graphs.formats.assembly import format_assembly, parse_assembly
from kitchensync.task_graphs.formats.captaincook4d import format_captaincook4d, parse_captaincook4d
from kitchensync.task_graphs.formats.graph_json import format_graph_json, parse_graph_json
from kitchensync.task_graphs.formats.recipe_sources import (
    select_cooklang,
    select_json_ld,
    select_plain,
    selected_of,
)
from kitchensync.task_graphs.formats.strict_json import Reader, dump
from kitchensync.task_graphs.model import Graph, Step
from kitchensync.task_graphs.text.plain_lines import LineKind, RecipeLine, read_lines
from kitchensync.task_graphs.text.recipe_text import Selected, develop, identify, in_written_order, new_graph

MAX_RECIPE = 200_000
TEXTS = ("cooklang", "jsonld", "text")
"""Kinds of recipes without a graph."""

_GRAPHS = {"captaincook4d": parse_captaincook4d, "graph": parse_graph_json}
_SOURCES = {"cooklang": select_cooklang, "jsonld": select_json_ld, "text": select_plain}
_ENDINGS = {
    "cook": "cooklang",
    "txt": "text",
    "md": "text",
    "html": "jsonld",
    "jsonld": "jsonld",
}


def kind_of(name: str, text: str) -> str:
    """Return the format of a file by its name, of JSON by its keys. Raises BadGraph for DOT, which is write-only."""
    ending = name.lower().rpartition(".")[2]
    if ending in ("dot", "gv"):
        raise BadGraph(name, "", "DOT cannot be read; give the graph as JSON or the recipe as text")
    if ending in _ENDINGS:
        return _ENDINGS[ending]
    if "schema.org" in text and re.search(r'"Recipe"|/Recipe"', text):
        return "jsonld"
    if re.search(r'"examples"\s*:\s*\[', text) and '"toy_id"' in text:
        return "assembly"
    return "graph" if re.search(r'"schema"\s*:\s*"graph/', text) else "captaincook4d"


def parse_graph(text: str, *, name: str, kind: str, toy: str = "") -> Graph:
    """Parse one graph; a recipe without a graph gives a new graph whose edges are suggestions. Raises BadGraph."""
    if kind in _SOURCES:
        return start_graph(_SOURCES[kind](_checked_size(text, name), name=name), name)
    if kind != "assembly":
        return _GRAPHS[kind](text, name=name)
    graphs = parse_assembly(text, name=name).graphs
    for graph in graphs:
        if toy == graph.recipe.recipe or (not toy and len(graphs) == 1):
            return graph
    toys = ", ".join(graph.recipe.recipe for graph in graphs[:10])
    why = f"has {len(graphs)} graphs ({toys}); choose one with `graph convert --toy`"
    raise BadGraph(name, "", why)


def written_lines(
    text: str, *, name: str, kinds: Sequence[LineKind] = ()
) -> list[tuple[RecipeLine, list[Step]]]:
    """Return every non-empty line of a plain text with its steps, numbered consecutively. Raises BadGraph."""
    lines, count = list[tuple[RecipeLine, list[Step]]](), 0
    for line in read_lines(_checked_size(text, name), kinds):
        steps = develop(identify(selected_of([line], name=name))) if line.kind == "step" else []
        lines.append((line, [replace(step, node=count + step.node) for step in steps]))
        count += len(steps)
    return lines


def written_graph(text: str, *, name: str, kinds: Sequence[LineKind] = ()) -> Graph:
    """Make a graph from a plain text, in the order of its lines; other lines are kept in `extra`. Raises BadGraph."""
    lines = read_lines(_checked_size(text, name), kinds)
    graph = in_written_order(start_graph(selected_of(lines, name=name), name))
    others = [[line.kind, line.text] for line in lines if line.kind != "step"]
    return replace(graph, extra=dump({"written": others}) if others else "")


def _checked_size(text: str, name: str) -> str:
    if len(text) > MAX_RECIPE:
        raise BadGraph(name, "", f"longer than {MAX_RECIPE} characters; this is not a recipe")
    return text


def start_graph(selected: Selected, name: str) -> Graph:
    """Start a graph from a recipe. Raises BadGraph for a graph that `graph/1` could not read back."""
    read = Reader(name)
    graph = new_graph(selected, name=name)
    read.number_of_steps(len(graph.nodes), "steps")
    for step in graph.nodes:
        read.label(step.label, f"step {step.node}")
    return graph


def format_graph(graph: Graph, kind: str) -> str:
    """Write one graph as a file; recipe texts are read-only."""
    if kind == "captaincook4d":
        return format_captaincook4d(graph)
    if kind == "graph":
        return format_graph_json(graph)
    return format_dot(graph) if kind == "dot" else format_assembly([graph])


def written_back(text: str, kind: str, graph: Graph) -> str:
    """Write a graph in the layout of `text`, or in the default layout if that is unknown."""
    if kind == "captaincook4d":
        original = parse_captaincook4d(text, name=graph.name)
        style = captaincook4d.layout_of(text, original) or "line"
        return format_captaincook4d(graph, layout=style)
    if kind == "assembly":
        file = parse_assembly(text, name=graph.name)
        layout = assembly.layout_of(text, file) or assembly.LAYOUTS[0]
        graphs = [graph if other.name == graph.name else other for other in file.graphs]
        return format_assembly(graphs, rest=file.rest, layout=layout)
    return ""


def remembering_layout(graph: Graph, text: str, kind: str) -> Graph:
    """Store the layout of a published graph in `extra`, so that `given_back` can write it unchanged."""
    layout = captaincook4d.layout_of(text, graph) if kind == "captaincook4d" else None
    return replace(graph, extra=dump({"captaincook4d": layout})) if layout else graph


def given_back(graph: Graph) -> str:
    """Write a graph from a published file in that file's layout, and any other graph as `graph/1`."""
    layout = json.loads(graph.extra or "{}").get("captaincook4d")
    if layout not in captaincook4d.LAYOUTS:
        return format_graph_json(graph)
    return format_captaincook4d(graph, layout=layout)


def format_dot(graph: Graph) -> str:
    """Write a graph as DOT, nodes and edges in their order: a node is a step's id with its label."""
    nodes = (f"{step.node} [label={_quoted(step.label)}]" for step in graph.nodes)
    edges = (f"{before} -> {after}" for before, after in graph.edges)
    lines = [f"digraph {_quoted(graph.name.rpartition('.')[0] or graph.name)} {{"]
    lines += [f"  {statement};" for statement in (*nodes, *edges)]
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'

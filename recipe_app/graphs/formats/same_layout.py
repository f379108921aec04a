"""Write a graph in the very layout of the text that it was read from."""

from __future__ import annotations

import json
from dataclasses import replace

from recipe_app.graphs.formats import assembly, captaincook4d
from recipe_app.graphs.formats.graph_json import format_graph_json
from recipe_app.graphs.formats.strict_json import dump
from recipe_app.graphs.model import Graph


def written_back(text: str, kind: str, graph: Graph) -> str:
    """Return the graph in the layout of `text`; in ours where the layout is not known."""
    if kind == "captaincook4d":
        bare = captaincook4d.parse_captaincook4d(text, name=graph.name)
        layout = captaincook4d.layout_of(text, bare) or "line"
        return captaincook4d.format_captaincook4d(graph, layout=layout)
    if kind == "assembly":
        file = assembly.parse_assembly(text, name=graph.name)
        known = assembly.layout_of(text, file) or assembly.LAYOUTS[0]
        graphs = [graph if one.name == graph.name else one for one in file.graphs]
        return assembly.format_assembly(graphs, rest=file.rest, layout=known)
    return ""


def remembering_layout(graph: Graph, text: str, kind: str) -> Graph:
    """Note the layout of a published graph in what is carried along, so that it can be given back as it came."""
    layout = captaincook4d.layout_of(text, graph) if kind == "captaincook4d" else None
    return replace(graph, extra=dump({"captaincook4d": layout})) if layout else graph


def given_back(graph: Graph) -> str:
    """Write a graph that came as a published file in that file's layout, every other one as `graph/1`."""
    layout = json.loads(graph.extra or "{}").get("captaincook4d")
    if layout not in captaincook4d.LAYOUTS:
        return format_graph_json(graph)
    return captaincook4d.format_captaincook4d(graph, layout=layout)

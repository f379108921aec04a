"""Write a graph in the very layout of the text that it was read from."""

from __future__ import annotations

from recipe_app.graphs.formats import assembly, captaincook4d
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

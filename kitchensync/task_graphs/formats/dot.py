"""Task graphs as DOT: `digraph { 0 [label="START"]; 0 -> 1; }`, the notation in prompts for language models."""

from __future__ import annotations

from kitchensync.task_graphs.model import Graph


def format_dot(graph: Graph) -> str:
    """Write a graph as DOT, nodes and edges in their order: a node is a step's id with its label."""
    nodes = (f"{step.node} [label={_quoted(step.label)}]" for step in graph.nodes)
    edges = (f"{before} -> {after}" for before, after in graph.edges)
    lines = [f"digraph {_quoted(graph.name.rpartition('.')[0] or graph.name)} {{"]
    lines += [f"  {statement};" for statement in (*nodes, *edges)]
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'

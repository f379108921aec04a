"""Task graphs as DOT: `digraph { 0 [label="START"]; 0 -> 1; }`, the notation in prompts for language models."""

from __future__ import annotations

import itertools

from kitchensync.task_graphs.model import Graph


def format_dot(graph: Graph) -> str:
    """Write a graph as DOT, nodes and edges in their order: a node is a step's id with its label."""
    nodes = (f"{step.node} [label={_quoted(step.label)}]" for step in graph.nodes)
    return _digraph(graph, [*nodes, *(f"{before} -> {after}" for before, after in graph.edges)])


def format_dot_texts(graph: Graph) -> str:
    """Write a graph as DOT, for prompts: a node is a step's label; repeated labels are numbered."""
    names: dict[int, str] = {}
    for step in graph.nodes:
        numbered = (f"{step.label} ({count})" for count in itertools.count(2))
        choices = map(_quoted, itertools.chain([step.label], numbered))
        names[step.node] = next(name for name in choices if name not in names.values())
    edges = (f"{names[before]} -> {names[after]}" for before, after in graph.edges)
    return _digraph(graph, [*names.values(), *edges])


def _digraph(graph: Graph, statements: list[str]) -> str:
    lines = [f"digraph {_quoted(graph.name.rpartition('.')[0] or graph.name)} {{"]
    lines += [f"  {statement};" for statement in statements]
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'

"""Say to people what a script changes: what to leave out, what to do before what."""

from __future__ import annotations

from kitchensync.task_graphs.mistakes.scripts import Script
from kitchensync.task_graphs.model import Graph
from kitchensync.task_graphs.text.safety import must_stay


def say(graph: Graph, script: Script) -> list[str]:
    """Return one sentence for each stated error of a script."""
    text = {step.node: step.text for step in graph.numbered.steps}
    said = [f"Leave out: “{text[node]}”{_suffering(graph, script, node)}." for node in script.missing]
    return said + [f"Do “{text[v]}” before “{text[u]}”, not after it." for u, v in script.broken]


def _suffering(graph: Graph, script: Script, node: int) -> str:
    users = [graph.numbered.by_node[after].text for before, after in script.unmet if before == node]
    return f" (still done without it: {'; '.join(f'“{user}”' for user in users)})" if users else ""


def watched(graph: Graph, script: Script) -> list[int]:
    """Return the steps that keep people safe and that a script leaves out or moves."""
    moved = {node for edge in script.broken for node in edge}
    return [node for node in sorted({*script.missing, *moved}) if must_stay(graph.by_node[node].text)]


def cautions(graph: Graph, script: Script) -> list[str]:
    """Return what to watch in a script, a sentence for each of those steps."""
    return [
        f"“{graph.numbered.by_node[node].text}” is {'left out' if node in script.missing else 'moved'}: "
        "somebody must watch the heat or the raw food"
        for node in watched(graph, script)
    ]

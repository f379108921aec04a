"""Check a task graph for errors and oddities; each finding has its place and a fix."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from kitchensync.task_graphs.model import Graph
from kitchensync.task_graphs.order.closure import describe_cycle, find_cycle, redundant_edges
from kitchensync.task_graphs.text.actions import SECOND_ACTION

Level = Literal["error", "warning", "note"]

READABLE = 90
"""Characters of a step that fit on the tablet without smaller letters."""

_SECOND_AMOUNT = re.compile(r"\d\S*\s*(?:tsp|tbsp|cup|g|ml)s?\b.*\band\b.*\d\S*\s*(?:tsp|tbsp|cup|g|ml)s?\b")


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding about a graph; an `error` makes it unusable, a `note` may be intended."""

    level: Level
    code: str
    place: str
    text: str
    fix: str


def check_graph(graph: Graph) -> list[Finding]:
    """Return all findings, errors first."""
    checks: tuple[Callable[[Graph], Iterator[Finding]], ...] = (
        _cycle,
        _terminals,
        _steps_present,
        _reachability,
        _redundancy,
        _shared_texts,
        _several_actions,
        _long_texts,
        _suggestions,
    )
    findings = [finding for check in checks for finding in check(graph)]
    return sorted(findings, key=lambda finding: ("error", "warning", "note").index(finding.level))


def _cycle(graph: Graph) -> Iterator[Finding]:
    if cycle := find_cycle(graph):
        text = f"steps wait for each other: {describe_cycle(graph, cycle)}"
        yield Finding("error", "cycle", f"step {cycle[0]}", text, "remove one of these edges")


def _terminals(graph: Graph) -> Iterator[Finding]:
    for name, node in (("START", graph.start), ("END", graph.end)):
        if node is None:
            fix = f'add a step with the text "{name}"'
            yield Finding("error", f"no-{name.lower()}", "steps", f"there is no {name}", fix)
    for before, after in graph.edges:
        if after == graph.start or before == graph.end:
            text = "an edge leads into START" if after == graph.start else "an edge leads out of END"
            place = f"edge [{before}, {after}]"
            yield Finding("error", "terminal-edge", place, text, "reverse or remove the edge")


def _steps_present(graph: Graph) -> Iterator[Finding]:
    if not graph.steps:
        yield Finding("error", "no-steps", "steps", "nothing to do between START and END", "add the steps")


def between_start_and_end(graph: Graph) -> bool:
    """Return whether every node is on a path from START to END."""
    if graph.start is None or graph.end is None:
        return False
    everything = {step.node for step in graph.nodes}
    return _reached(graph.start, graph.successors) == _reached(graph.end, _predecessors(graph)) == everything


def _predecessors(graph: Graph) -> dict[int, list[int]]:
    predecessors: dict[int, list[int]] = defaultdict(list)
    for before, after in graph.edges:
        predecessors[after].append(before)
    return predecessors


def _reachability(graph: Graph) -> Iterator[Finding]:
    directions = (graph.start, graph.successors, "from START"), (graph.end, _predecessors(graph), "to END")
    for terminal, neighbours, direction in directions:
        if terminal is None:
            continue
        reached = _reached(terminal, neighbours)
        for step in graph.steps:
            if step.node not in reached:
                edge = [terminal, step.node] if terminal == graph.start else [step.node, terminal]
                text, fix = f"no path leads {direction} ({step.text})", f"add the edge {edge} or a better one"
                yield Finding("error", "unreachable", f"step {step.node}", text, fix)


def _reached(root: int, neighbours: dict[int, list[int]]) -> set[int]:
    reached, waiting = {root}, [root]
    while waiting:
        for node in neighbours.get(waiting.pop(), []):
            if node not in reached:
                reached.add(node)
                waiting.append(node)
    return reached


def _redundancy(graph: Graph) -> Iterator[Finding]:
    if find_cycle(graph):
        return
    for before, after in redundant_edges(graph):
        place = f"edge [{before}, {after}]"
        yield Finding("warning", "redundant-edge", place, "other edges imply it", "remove the edge")


def _shared_texts(graph: Graph) -> Iterator[Finding]:
    nodes = defaultdict(list)
    for step in graph.steps:
        nodes[step.label].append(step.node)
    for label, sharing in nodes.items():
        if len(sharing) > 1:
            place = "steps " + ", ".join(map(str, sharing))
            fix = "name what differs (first, second, which pan), or keep it: the ids tell them apart"
            yield Finding("note", "shared-text", place, f"have one text: {label}", fix)


def _several_actions(graph: Graph) -> Iterator[Finding]:
    for step in graph.steps:
        second = SECOND_ACTION.search(step.text)
        if second or _SECOND_AMOUNT.search(step.text):
            what = f'a second action, "{second.group(1)}"' if second else "two amounts"
            fix = "split it, so that each step is one thing to do"
            yield Finding("note", "several-actions", f"step {step.node}", f"{what}: {step.text}", fix)


def _long_texts(graph: Graph) -> Iterator[Finding]:
    for step in graph.steps:
        if len(step.text) > READABLE:
            text = f"{len(step.text)} characters: {step.text}"
            fix = f"shorten it to {READABLE}, or it is shown smaller"
            yield Finding("note", "long-text", f"step {step.node}", text, fix)


def _suggestions(graph: Graph) -> Iterator[Finding]:
    if graph.suggested:
        text = f"{len(graph.suggested)} proposed edges wait for a decision; they order nothing yet"
        yield Finding("note", "suggested", "suggested", text, "accept or remove them")

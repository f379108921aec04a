"""A row for each moment after a step of an assembled toy: what was done, what is next or missing, what was wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from recipe_app.graphs.model import Graph
from recipe_app.releases.promqa.assembly_steps import AssemblyStep
from recipe_app.releases.promqa.questions import Targets

SHORTEST_S = 10.0
REMARKED = {
    "order": "wrong order",
    "past": "previous one is a mistake",
    "misadjustment": "shouldn't have happened",
    "location": "wrong position",
}
"""Kind of question -> the remark that answers it."""


def assembly_rows(
    toy: str, sequence: str, steps: list[AssemblyStep], graph: Graph
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a sequence; none in its first ten seconds, or where a later step is under way.

    `candidates` has the answer to each of eight kinds of question, None where the files do not tell it. `is_screwed`
    is always None: it needs the fine actions, which these files do not hold.
    """
    targets, fastened = Targets.of(graph), _fastened(graph)
    history: list[str] = []
    for place, step in enumerate(steps):
        _add(history, step)
        if step.end_s - steps[0].start_s < SHORTEST_S or _is_under_way(step, steps[place + 1 :]):
            continue
        following, passed = _targets(targets, history)
        yield {
            "toy": toy,
            "sequence": sequence,
            "end": step.end_s,
            "history": list(history),
            "current": step.text,
            "next": following,
            "missing": passed,
            "candidates": {
                "next": following,
                "missing": passed,
                **{kind: step.remark == remark for kind, remark in REMARKED.items()},
                "general": None,
                "current_general": None,
            },
            "w_screw": fastened.get(step.text),
            "is_screwed": None,
        }


def _add(history: list[str], step: AssemblyStep) -> None:
    """Add a step to what was done; one that is taken apart again takes back the latest that put it together."""
    if step.undoes is None:
        history.append(step.text)
    elif step.undoes in history:
        del history[len(history) - 1 - history[::-1].index(step.undoes)]


def _is_under_way(step: AssemblyStep, later: list[AssemblyStep]) -> bool:
    return any(max(step.start_s, one.start_s) < min(step.end_s, one.end_s) for one in later)


def _targets(targets: Targets, history: list[str]) -> tuple[list[str], list[str]]:
    """Return the texts of what can come next and of what was passed over; steps without edges are no part of it."""
    graph, texts = targets.graph, set(history)
    done = frozenset(one.node for one in graph.nodes if one.label in texts or one.node == graph.start)
    return tuple(  # type: ignore[return-value]
        [graph.by_node[node].label for node in nodes] for nodes in (targets.next(done), targets.missing(done))
    )


def _fastened(graph: Graph) -> dict[str, bool]:
    """Return, by text, whether a step fastens with a screw, as its node is marked."""
    return {
        step.label: bool(
            (json.loads(step.extra) if step.extra else {}).get("assembly", {}).get("data", {}).get("checked")
        )
        for step in graph.steps
    }

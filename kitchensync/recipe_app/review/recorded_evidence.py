"""Evidence of recordings about the edges of a recipe: a session without an error keeps every valid edge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kitchensync.operations.session_state import State
from kitchensync.recipe_app.cooking.judging import performed
from kitchensync.recipe_app.store import tables
from kitchensync.recipe_app.store.app_records import AppRecords
from kitchensync.task_graphs.model import Graph
from kitchensync.task_graphs.scoring.evidence import EdgeEvidence, Observation, weigh_edges
from kitchensync.task_graphs.scoring.judge import Prerequisites, judge, match_texts

LOOKED_BACK = ("review", "done")
"""Phases of a recording after cooking has ended."""
MOST_RECORDINGS = 200
"""Number of newest recordings that count as evidence."""


def cooked(records: AppRecords, recipe: str, most: int = MOST_RECORDINGS) -> dict[str, dict[str, Any]]:
    """Return the recordings of a recipe whose cooking has ended, by id, the newest first."""
    table = tables.recording
    where = table.c.recipe == recipe, table.c.phase.in_(LOOKED_BACK)
    rows = records.rows(table, *where, order=table.c.created_utc_ns.desc(), limit=most)
    return {row["id"]: row for row in rows}


def contradicted(graph: Graph, states: Mapping[str, State]) -> list[dict[str, Any]]:
    """Return the edges broken in a session without errors, as pages show them. Raises CyclicGraph."""
    return [edge_row(edge) for edge in evidence_of(graph, states) if edge.is_challenged]


def evidence_of(graph: Graph, states: Mapping[str, State]) -> list[EdgeEvidence]:
    """Return the evidence of every edge, the most contradicted first; `states` are recordings by id.

    Recordings of other versions of the recipe count too, with steps matched by their text. Raises CyclicGraph.
    """
    order, observed = Prerequisites(graph), []
    for name, state in states.items():
        words, done = state["recording"]["steps"], performed(state)
        nodes = match_texts(order, [words[str(step.node)]["label"] for step in done])
        known = [replace(step, node=node) for step, node in zip(done, nodes, strict=True)]
        made = any(not error["removed"] for error in state["errors"].values())
        observed.append(Observation(name, judge(order, known), is_normal=not made))
    return weigh_edges(order, observed)


def edge_row(evidence: EdgeEvidence) -> dict[str, Any]:
    """Return how recordings without an error kept or broke an edge, as the page shows it."""
    broken = evidence.broken_in_normal
    return {
        "edge": evidence.edge,
        "kept": len(evidence.normal) - len(broken),
        "seen": len(evidence.normal),
        "broken_by": broken,
    }

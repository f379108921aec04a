"""What recordings of the app say about the edges of a recipe: without an error nobody breaks one that is due."""

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
"""Phases of a recording in which nobody cooks any more."""
MOST_RECORDINGS = 200
"""The newest ones are evidence."""


def cooked(records: AppRecords, recipe: str, most: int = MOST_RECORDINGS) -> dict[str, dict[str, Any]]:
    """Return the recordings of a recipe in which nobody cooks any more, by id, the newest first."""
    table = tables.recording
    where = table.c.recipe == recipe, table.c.phase.in_(LOOKED_BACK)
    rows = records.rows(table, *where, order=table.c.created_utc_ns.desc(), limit=most)
    return {row["id"]: row for row in rows}


def contradicted(graph: Graph, states: Mapping[str, State]) -> list[dict[str, Any]]:
    """Return the edges that somebody broke who made no error, as pages show them. Raises CyclicGraph."""
    return [told(one) for one in evidence_of(graph, states) if one.is_challenged]


def evidence_of(graph: Graph, states: Mapping[str, State]) -> list[EdgeEvidence]:
    """Return the evidence of every edge, the most contradicted first; `states` are recordings by id.

    Recordings of other versions of the recipe count too: a step is known by its text. Raises CyclicGraph.
    """
    order, observed = Prerequisites(graph), []
    for name, state in states.items():
        words, done = state["recording"]["steps"], performed(state)
        nodes = match_texts(order, [words[str(one.node)]["label"] for one in done])
        known = [replace(one, node=node) for one, node in zip(done, nodes, strict=True)]
        made = any(not error["removed"] for error in state["errors"].values())
        observed.append(Observation(name, judge(order, known), is_normal=not made))
    return weigh_edges(order, observed)


def told(evidence: EdgeEvidence) -> dict[str, Any]:
    """Return what recordings without an error did to an edge, as the page shows it."""
    broken = evidence.broken_in_normal
    return {
        "edge": evidence.edge,
        "kept": len(evidence.normal) - len(broken),
        "seen": len(evidence.normal),
        "broken_by": broken,
    }

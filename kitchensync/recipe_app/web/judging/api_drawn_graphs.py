"""Graphs of a recipe that people draw independently; differences are ruled on, the outcome is a new version."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Request
from fastapi.responses import Response
from pydantic import Field

from kitchensync.operations.errors import BadOperation, NotNow
from kitchensync.operations.operation_kinds import Strict
from kitchensync.recipe_app.cooking.collaborators import Collaborators
from kitchensync.recipe_app.people.accounts import Visitor
from kitchensync.recipe_app.people.roles import Access
from kitchensync.recipe_app.review.drawn_graphs import (
    ACCEPTED,
    GRAPHS,
    RULED,
    RULED_FASTENING,
    Edges,
    agreement_of_fastening,
    agreement_of_graphs,
    differing,
    drawn,
    fastened,
    graph_with,
    holding,
    rulings,
)
from kitchensync.recipe_app.review.recorded_evidence import contradicted, cooked, edge_row, evidence_of
from kitchensync.recipe_app.review.rounds import round_of
from kitchensync.recipe_app.store.shelf import Recipe, shelve
from kitchensync.recipe_app.web.bodies import EmptyBody, OrderEdges
from kitchensync.recipe_app.web.desk.pages import render
from kitchensync.recipe_app.web.door.access import Asking, JsonObject, Route, Tools
from kitchensync.recipe_app.web.judging.review_routes import Asked, ReviewWork, ask_people, who_may
from kitchensync.task_graphs.model import Graph
from kitchensync.task_graphs.order.drawing import draw


class DrawnGraph(OrderEdges):
    """All edges of a person's graph, and the steps that fasten with a screw."""

    fastened: Annotated[tuple[int, ...], Field(max_length=20_000)] = ()


class RuledFastening(Strict):
    """A ruling on whether a step fastens with a screw."""

    step: int
    holds: bool


class RuledEdge(Strict):
    """A ruling on whether an edge holds."""

    edge: tuple[int, int]
    holds: bool


def graphs_page(request: Request, tools: Tools, visitor: Asking, recipe: str) -> Response:
    """Show the order of a recipe's steps, to be drawn by several people independently."""
    shelved = tools.shelf.get(recipe)
    may = who_may(tools, Access.STUDY)
    return render(request, "desk/graphs.html", visitor=visitor, recipe=shelved, may=may)


def graphs(tools: Tools, visitor: Asking, recipe: str) -> JsonObject:
    """Return the steps and the visitor's graph; when all have submitted, the differences and the agreement."""
    shelved, work = _begin(tools, visitor, recipe)
    graph, mine = shelved.graph, drawn(work.ops, visitor.actor)
    rows = cooked(tools.records, recipe)
    states = {name: tools.records.state(name) for name in rows}
    answer = {
        "hash": work.subject,
        "steps": [[step.node, step.text] for step in graph.numbered.steps],
        "mine": sorted(mine),
        "fastened": sorted(fastened(work.ops, visitor.actor)),
        **draw(graph_with(graph, mine)).as_json(),
        "evidence": [edge_row(edges) for edges in evidence_of(graph_with(graph, mine), states)],
        "contradicted": contradicted(graph, states),
        "films": [[name, row["created_utc_ns"]] for name, row in rows.items() if row["folder"]],
        **work.round.for_page(visitor.actor),
    }
    if not work.round.is_complete:
        return answer
    (people, screws), ruled = _drawn(work), rulings(work.ops)
    return answer | {
        "drawn": [sorted(edges) for edges in people],
        "differing": [{"edge": edge, "holds": ruled.get(edge)} for edge in differing(people)],
        "differing_fastening": [{"step": step, "holds": ruled.get(step)} for step in differing(screws)],
        **_agreement(graph, work),
    }


def draw_graph(tools: Tools, visitor: Asking, recipe: str, body: DrawnGraph) -> JsonObject:
    """Save the edges that somebody has drawn so far, and the steps that fasten."""
    shelved, work = _begin(tools, visitor, recipe)
    if work.subject != body.seen:
        raise NotNow("this recipe was changed since the page was loaded; load it again")
    work.round.require_open(visitor.actor)
    edges = sorted({(u, v) for u, v in body.edges})
    graph_with(shelved.graph, edges, body.fastened)
    work.keep(GRAPHS.edited, {"edges": edges, "fastened": sorted({*body.fastened})})
    return {"edges": len(edges)}


def submit_graph(tools: Tools, visitor: Asking, recipe: str, body: EmptyBody) -> JsonObject:
    """Submit a graph; it may have no edges."""
    _, work = _begin(tools, visitor, recipe)
    work.round.require_open(visitor.actor)
    work.keep(GRAPHS.submitted, {})
    return {"edges": len(drawn(work.ops, visitor.actor))}


def assign_graphs(tools: Tools, visitor: Asking, recipe: str, body: Asked) -> JsonObject:
    """Assign people to draw this version of a recipe; from then on only they may."""
    _, work = _begin(tools, visitor, recipe)
    return ask_people(work, body, Access.STUDY)


def rule_edge(tools: Tools, visitor: Asking, recipe: str, body: RuledEdge) -> JsonObject:
    """Save the ruling on an edge that some drew and others did not; those who drew may not rule."""
    _, work = _begin(tools, visitor, recipe)
    work.round.require_ruler(visitor.actor)
    if body.edge not in differing(_drawn(work)[0]):
        raise BadOperation("this was not asked; load the page again")
    work.keep(RULED, body.model_dump())
    return {"edge": body.edge}


def rule_fastening(tools: Tools, visitor: Asking, recipe: str, body: RuledFastening) -> JsonObject:
    """Save the ruling on a step that some marked as fastening; those who drew may not rule."""
    _, work = _begin(tools, visitor, recipe)
    work.round.require_ruler(visitor.actor)
    if body.step not in differing(_drawn(work)[1]):
        raise BadOperation("this was not asked; load the page again")
    work.keep(RULED_FASTENING, body.model_dump())
    return {"step": body.step}


def accept_graph(tools: Tools, visitor: Asking, recipe: str, body: EmptyBody) -> JsonObject:
    """Make the agreed and ruled edges the newest version of the recipe."""
    shelved, work = _begin(tools, visitor, recipe)
    work.round.require_ruler(visitor.actor)
    (people, screws), ruled = _drawn(work), rulings(work.ops)
    graph = graph_with(shelved.graph, holding(people, ruled), holding(screws, ruled))
    shelve(tools.records, tools.shelf, shelved.name, graph, actor=visitor.actor, edited="review")
    outcome = {"became": graph.content_hash, **_agreement(shelved.graph, work)}
    work.keep(ACCEPTED, outcome)
    return outcome


def _begin(tools: Collaborators, visitor: Visitor, recipe: str) -> tuple[Recipe, ReviewWork]:
    shelved = tools.shelf.get(recipe)
    ops = tools.records.ops(shelved.graph.content_hash)
    return shelved, ReviewWork(tools, visitor, shelved.graph.content_hash, GRAPHS, ops, round_of(ops, GRAPHS))


def _drawn(work: ReviewWork) -> tuple[list[Edges], list[frozenset[int]]]:
    """Return the edges and the fastening steps of each person."""
    people = work.round.people
    return [drawn(work.ops, person) for person in people], [fastened(work.ops, person) for person in people]


def _agreement(graph: Graph, work: ReviewWork) -> dict[str, Any]:
    people, screws = _drawn(work)
    return {
        "agreement": agreement_of_graphs(graph, people),
        "fastening": agreement_of_fastening(graph, screws),
    }


DRAWN = "/api/v1/desk/recipes/{recipe}/graphs"
ROUTES = [
    Route("/desk/recipes/{recipe}/graphs", graphs_page, Access.STUDY, page=True),
    Route(DRAWN, graphs, Access.STUDY),
    Route(DRAWN, draw_graph, Access.STUDY, "POST"),
    Route(f"{DRAWN}/submit", submit_graph, Access.STUDY, "POST"),
    Route(f"{DRAWN}/assign", assign_graphs, Access.STUDY, "POST"),
    Route(f"{DRAWN}/rule", rule_edge, Access.STUDY, "POST"),
    Route(f"{DRAWN}/rule-fastening", rule_fastening, Access.STUDY, "POST"),
    Route(f"{DRAWN}/accept", accept_graph, Access.STUDY, "POST"),
]

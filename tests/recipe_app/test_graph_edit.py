"""Edges of a graph edited: what stays stays as it was, what they make of it is told, and where it is drawn."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kitchensync.task_graphs.errors import BadGraph
from kitchensync.task_graphs.model import END, START, Edge, Graph, Link, Step
from kitchensync.task_graphs.order.drawing import draw
from kitchensync.task_graphs.order.edit import order_facts, with_inner_edges
from kitchensync.task_graphs.scoring.validate import check_graph

pytestmark = pytest.mark.slow

SIZE = 6
PAIRS = [(u, v) for u in range(1, SIZE + 1) for v in range(1, SIZE + 1) if u != v]


def graph_of(edges: set[Edge]) -> Graph:
    nodes = (Step(0, START), *(Step(n, f"Do-Do {n}") for n in range(1, SIZE + 1)), Step(SIZE + 1, END))
    free = tuple((0, n) for n in range(1, SIZE + 1)) + tuple((n, SIZE + 1) for n in range(1, SIZE + 1))
    return with_inner_edges(Graph("any.json", nodes, free), edges)


edges = st.sets(st.sampled_from(PAIRS), max_size=9)
forward = st.sets(st.sampled_from([pair for pair in PAIRS if pair[0] < pair[1]]), max_size=9)


@given(edges, edges)
def test_the_graph_has_the_edges_that_were_asked_for_and_nothing_dangles(
    was: set[Edge], now: set[Edge]
) -> None:
    graph = with_inner_edges(graph_of(was), now)
    assert set(graph.inner_edges) == now
    befores, afters = {v for _, v in graph.edges}, {u for u, _ in graph.edges}
    for step in graph.steps:
        assert step.node in befores
        assert step.node in afters
    assert len(graph.edges) == len(set(graph.edges))
    assert [edge for edge in graph.edges if edge in set(graph_of(was).edges)] == [
        edge for edge in graph_of(was).edges if edge in set(graph.edges)
    ]  # what stays stays in its place


@given(edges)
def test_what_the_edges_make_of_it_is_what_all_orders_say(wanted: set[Edge]) -> None:
    graph = graph_of(wanted)
    facts = order_facts(graph)
    valid = {
        order
        for order in itertools.permutations(range(1, SIZE + 1))
        if all(order.index(u) < order.index(v) for u, v in wanted)
    }
    assert (facts.total or 0) == len(valid)
    if not valid:
        assert facts.cycle[0] == facts.cycle[-1]
        assert all(edge in wanted for edge in itertools.pairwise(facts.cycle))
        return
    assert set(facts.orders) <= valid
    assert len(set(facts.orders)) == min(3, len(valid))
    for edge in wanted:  # redundant: the same orders without it
        without = wanted - {edge}
        same = all(
            order in valid
            for order in itertools.permutations(range(1, SIZE + 1))
            if all(order.index(u) < order.index(v) for u, v in without)
        )
        assert (edge in facts.redundant) == same


@given(edges)
def test_every_step_and_edge_is_drawn_below_what_it_waits_for(wanted: set[Edge]) -> None:
    graph = graph_of(wanted)
    drawn = draw(graph)
    assert set(drawn.places) == set(range(1, SIZE + 1))
    assert len(set(drawn.places.values())) == SIZE
    assert set(drawn.lines) == wanted
    upwards = [edge for edge in wanted if drawn.places[edge[0]][1] >= drawn.places[edge[1]][1]]
    assert bool(upwards) == bool(order_facts(graph).cycle)
    for (before, after), points in drawn.lines.items():
        assert (points[0], points[-1]) == (drawn.places[before], drawn.places[after])
        assert not set(points[1:-1]) & set(drawn.places.values())
    assert all(0 <= column <= drawn.columns - 1 for column, _ in drawn.places.values())


def test_an_accepted_suggestion_keeps_why_and_a_removed_edge_takes_it_along() -> None:
    why = Link((1, 2), "physical", "uses the bowl of step 1", "rule: tool")
    graph = Graph("a.json", graph_of(set()).nodes, graph_of(set()).edges, suggested=(why,))
    taken = with_inner_edges(graph, {(1, 2)})
    assert (taken.links, taken.suggested) == ((why,), ())
    assert with_inner_edges(taken, set()).links == ()
    with pytest.raises(BadGraph, match="no such step"):
        with_inner_edges(graph, {(1, 99)})


@pytest.fixture(scope="module")
def stems(shared_data: Callable[[str], Path]) -> list[Path]:
    return sorted(shared_data("captaincook4d/task_graphs").glob("*.json"))


def test_the_published_graphs_are_kept_byte_for_byte_but_for_what_was_edited(
    kitchen: Any, stems: list[Path]
) -> None:
    desk = kitchen.desk("researcher")
    assert len(stems) == 16
    for path in stems:
        name, came = path.stem, path.read_bytes()
        body = {"file_name": path.name, "text": came.decode()}
        put = desk.post("/api/v1/desk/recipes", json=body).json()
        order = f"/api/v1/desk/recipes/{name}/order"
        inner = [list(edge) for edge in kitchen.tools.shelf.get(name).graph.inner_edges]
        kept = desk.post(order, json={"edges": inner, "seen": put["graph_hash"]}).json()
        assert kept["graph_hash"] == put["graph_hash"]
        assert desk.get(f"/api/v1/desk/recipes/{name}/export").content == came
        removed = inner.pop(len(inner) // 2)
        assert desk.post(order, json={"edges": inner, "seen": put["graph_hash"]}).status_code == 200
        was, now = json.loads(came), desk.get(f"/api/v1/desk/recipes/{name}/export").json()
        assert now["steps"] == was["steps"]
        lost = [edge for edge in was["edges"] if edge not in now["edges"]]
        assert lost == [removed]
        left = [edge for edge in was["edges"] if edge != removed]
        first, last = (
            next(int(n) for n, text in was["steps"].items() if text == end) for end in (START, END)
        )
        added = [[first, removed[1]]] if removed[1] not in [v for _, v in left] else []
        added += [[removed[0], last]] if removed[0] not in [u for u, _ in left] else []
        assert now["edges"] == left + added
        assert not [one for one in check_graph(kitchen.tools.shelf.get(name).graph) if one.level == "error"]


def test_what_was_changed_meanwhile_is_not_written_over(kitchen: Any) -> None:
    desk = kitchen.desk("researcher")
    graph = kitchen.tools.shelf.get("tea_and_toast").graph
    order = "/api/v1/desk/recipes/tea_and_toast/order"
    edges = [list(edge) for edge in graph.inner_edges]
    seen = graph.content_hash
    assert desk.post(order, json={"edges": edges[1:], "seen": seen}).status_code == 200
    late = desk.post(order, json={"edges": edges, "seen": seen})
    assert (late.status_code, "load it again" in late.json()["error"]) == (409, True)
    now = kitchen.tools.shelf.get("tea_and_toast").graph
    circle = [*edges[1:], [edges[1][1], edges[1][0]]]
    refused = desk.post(order, json={"edges": circle, "seen": now.content_hash})
    assert (refused.status_code, "wait for each other" in refused.json()["error"]) == (422, True)
    told = desk.post(f"{order}/check", json={"edges": circle, "seen": now.content_hash}).json()
    assert set(told["cycle"]) >= set(edges[1])
    assert kitchen.tools.shelf.get("tea_and_toast").graph == now

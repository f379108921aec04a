"""Texts, hash, closure and reduction of a graph, and findings of the checks."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_runs import examples

from kitchensync.task_graphs.errors import CyclicGraph
from kitchensync.task_graphs.formats.graph_files import read_graph
from kitchensync.task_graphs.model import Edge, Graph, Step
from kitchensync.task_graphs.order.closure import find_cycle, redundant_edges, relation, topological
from kitchensync.task_graphs.scoring.validate import check_graph


def framed(labels: list[str], edges: list[Edge]) -> Graph:
    """Return a graph with START 0 and END last, and only these edges."""
    nodes = [Step(0, "START"), *(Step(i, label) for i, label in enumerate(labels, start=1))]
    return Graph("made.json", (*nodes, Step(len(labels) + 1, "END")), tuple(edges))


def codes(graph: Graph) -> list[tuple[str, str]]:
    return [(finding.code, finding.place) for finding in check_graph(graph)]


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("Add-1/2 tsp salt to the bowl", "Add 1/2 tsp salt to the bowl"),
        ("Measure and add-2 tbsp water", "Measure and add 2 tbsp water"),
        ("stir-then stir the bowl", "Then stir the bowl"),
        ("Place-Place 8-inch tortilla", "Place 8-inch tortilla"),
        ("Serve", "Serve"),
    ],
)
def test_texts_have_the_action_once(label: str, text: str) -> None:
    assert Step(1, label).text == text


def test_the_hash_is_of_the_content() -> None:
    graph = framed(["Boil-Boil water", "Pour-Pour it"], [(0, 1), (1, 2), (2, 3)])
    same = Graph("other.json", tuple(reversed(graph.nodes)), tuple(reversed(graph.edges)))
    retold = framed(["Boil-Boil water", "Pour-Pour it all"], list(graph.edges))
    assert same.content_hash == graph.content_hash
    assert retold.content_hash != graph.content_hash
    assert (
        framed(["Boil-Boil water", "Pour-Pour it"], [(0, 1), (0, 2), (2, 3)]).content_hash
        != graph.content_hash
    )


def test_steps_with_the_same_text_are_different_steps() -> None:
    graph = framed(["Stir-Stir", "Heat-Heat", "Stir-Stir"], [(0, 1), (1, 2), (2, 3), (3, 4)])
    assert topological(graph) == [0, 1, 2, 3, 4]
    assert codes(graph) == [("shared-text", "steps 1, 3")]


@st.composite
def random_dags(draw: st.DrawFn) -> Graph:
    count = draw(st.integers(1, 8))
    pairs = list(itertools.combinations(draw(st.permutations(range(1, count + 1))), 2))
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return Graph(
        "made.json", tuple(Step(node, f"Do-Do {node}") for node in range(1, count + 1)), tuple(edges)
    )


def pairs_of(graph: Graph) -> set[Edge]:
    """Return the order as pairs, by repeated joining, unlike the code under test."""
    pairs = set(graph.edges)
    while True:
        more = {(a, d) for a, b in pairs for c, d in pairs if b == c} - pairs
        if not more:
            return pairs
        pairs |= more


@examples(200)
@given(random_dags())
def test_closure_and_reduction_are_the_same_order(graph: Graph) -> None:
    order = relation(graph)
    implied = {
        (order.items[i], node)
        for j, node in enumerate(order.items)
        for i in range(len(order.items))
        if order.before[j] >> i & 1
    }
    assert implied == pairs_of(graph)
    reduced = frozenset(graph.edges) - frozenset(redundant_edges(graph))
    assert pairs_of(Graph("r", graph.nodes, tuple(reduced))) == pairs_of(graph)
    for edge in reduced:  # and no smaller one gives it
        assert pairs_of(Graph("r", graph.nodes, tuple(reduced - {edge}))) != pairs_of(graph)


def test_a_cycle_is_shown_as_its_steps() -> None:
    graph = framed(["A-A", "B-B", "C-C"], [(0, 1), (1, 2), (2, 3), (3, 1), (3, 4)])
    assert find_cycle(graph) == [1, 2, 3, 1]
    finding = check_graph(graph)[0]
    assert (finding.level, finding.code) == ("error", "cycle")
    assert "1 (A) -> 2 (B) -> 3 (C) -> 1" in finding.text
    with pytest.raises(CyclicGraph, match=r"made\.json: these steps wait for each other"):
        relation(graph)


def test_an_edge_to_itself_is_a_cycle() -> None:
    assert find_cycle(framed(["A-A"], [(0, 1), (1, 1), (1, 2)])) == [1, 1]


def test_a_long_chain_needs_no_recursion() -> None:
    graph = framed(["Do-Do it"] * 3000, [(i, i + 1) for i in range(3001)])
    assert find_cycle(graph) is None


def test_unreachable_steps_are_named_with_the_missing_edge() -> None:
    graph = framed(["A-A", "B-B"], [(0, 1), (1, 3)])
    findings = check_graph(graph)
    assert [(f.code, f.place) for f in findings] == [("unreachable", "step 2")] * 2
    assert "add the edge [0, 2]" in findings[0].fix
    assert "add the edge [2, 3]" in findings[1].fix


def test_terminals_are_required_and_at_the_ends() -> None:
    graph = Graph("made.json", (Step(1, "A-A"), Step(2, "B-B")), ((1, 2),))
    assert codes(graph) == [("no-start", "steps"), ("no-end", "steps")]
    turned = framed(["A-A"], [(1, 0), (2, 1)])
    assert {place for code, place in codes(turned) if code == "terminal-edge"} == {
        "edge [1, 0]",
        "edge [2, 1]",
    }
    assert ("no-steps", "steps") in codes(framed([], [(0, 1)]))


def test_a_redundant_edge_is_a_warning() -> None:
    graph = framed(["A-A", "B-B", "C-C"], [(0, 1), (1, 2), (2, 3), (1, 3), (3, 4)])
    assert redundant_edges(graph) == [(1, 3)]
    assert [(f.level, f.place) for f in check_graph(graph)] == [("warning", "edge [1, 3]")]


@pytest.mark.parametrize(
    ("label", "several"),
    [
        ("Garnish-Garnish with cilantro and serve", True),
        ("Pour-Pour 1/2 tsp salt and 1 tbsp oil", True),
        ("Boil-Boil the water; then pour it", True),
        ("Mix-Mix salt and pepper", False),
        ("Add-In a bowl, add the tomatoes", False),
    ],
)
def test_several_actions_in_one_step_are_noted(label: str, several: bool) -> None:
    findings = codes(framed([label], [(0, 1), (1, 2)]))
    assert findings == ([("several-actions", "step 1")] if several else [])


def test_long_texts_are_noted() -> None:
    assert codes(framed([f"Do-Do {'x' * 90}"], [(0, 1), (1, 2)])) == [("long-text", "step 1")]


def test_published_graphs_are_sound(shared_data: Callable[[str], Path]) -> None:
    expected = json.loads(shared_data("captaincook4d/expected.json").read_text())["graphs"]
    for path in sorted(shared_data("captaincook4d/task_graphs").glob("*.json")):
        graph, numbers = read_graph(path), expected[path.stem]
        findings = check_graph(graph)
        assert {finding.level for finding in findings} <= {"note"}, path.name
        shared = {f.text.removeprefix("have one text: ") for f in findings if f.code == "shared-text"}
        assert shared == set(numbers["shared_texts"])
        assert (len(graph.steps), len(graph.edges)) == (numbers["steps"], numbers["edges"])
        assert len(redundant_edges(graph)) == numbers["redundant_edges"]

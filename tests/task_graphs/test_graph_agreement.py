"""Agreement of two annotators and evidence for edges agree with independent formulas."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from property_runs import examples

from kitchensync.cli import main
from kitchensync.task_graphs.errors import NotComparable
from kitchensync.task_graphs.formats.graph_files import read_annotations, read_task_graphs
from kitchensync.task_graphs.model import Edge, Graph, Step
from kitchensync.task_graphs.order.agreement import agree, compare
from kitchensync.task_graphs.scoring.evidence import weigh_edges
from kitchensync.task_graphs.scoring.score import observations

NODES = range(1, 6)
ASCENDING = list(itertools.combinations(NODES, 2))


def graph_of(edges: list[Edge], label: str = "Do") -> Graph:
    return Graph("made.json", tuple(Step(node, f"{label}-{label} {node}") for node in NODES), tuple(edges))


def orders_of(edges: list[Edge]) -> set[tuple[int, ...]]:
    return {
        order
        for order in itertools.permutations(NODES)
        if all(order.index(u) < order.index(v) for u, v in edges)
    }


def closed(edges: list[Edge]) -> set[Edge]:
    orders = orders_of(edges)
    return {
        (u, v) for u, v in itertools.permutations(NODES, 2) if all(o.index(u) < o.index(v) for o in orders)
    }


def f1(first: set[Edge], second: set[Edge]) -> float:
    if not first and not second:
        return 1.0
    return 2 * len(first & second) / (len(first) + len(second))


edge_lists = st.lists(st.sampled_from(ASCENDING), unique=True)


@pytest.mark.slow
@examples(150)
@given(edge_lists, edge_lists)
def test_agreement_is_as_defined(first: list[Edge], second: list[Edge]) -> None:
    agreement = agree(graph_of(first), graph_of(second))
    assert agreement.raw.f1 == pytest.approx(f1(set(first), set(second)))
    assert agreement.closure.f1 == pytest.approx(f1(closed(first), closed(second)))
    both, either = orders_of(first) & orders_of(second), orders_of(first) | orders_of(second)
    assert agreement.order_overlap == pytest.approx(len(both) / len(either))
    assert set(agreement.only_first) <= closed(first) - closed(second)
    assert (agreement.only_first == agreement.only_second == ()) == (orders_of(first) == orders_of(second))


def test_contradicting_annotators_share_no_order() -> None:
    agreement = agree(graph_of([(1, 2)]), graph_of([(2, 1)]))
    assert (agreement.order_overlap, agreement.raw.f1) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("first", "second", "value"), [([], [], 1.0), ([(1, 2)], [], 0.0), ([(1, 2)], [(1, 2), (2, 3)], 2 / 3)]
)
def test_empty_edge_sets_have_a_defined_agreement(
    first: list[Edge], second: list[Edge], value: float
) -> None:
    assert compare(first, second).f1 == pytest.approx(value)


def test_implied_edges_lower_only_raw_agreement() -> None:
    chain = [(1, 2), (2, 3), (3, 4), (4, 5)]
    agreement = agree(graph_of(chain), graph_of([*chain, (1, 3), (2, 5)]))
    assert agreement.raw.f1 == pytest.approx(0.8)
    assert (agreement.reduced.f1, agreement.closure.f1, agreement.cross.f1, agreement.order_overlap) == (
        1,
        1,
        1,
        1,
    )


def test_different_steps_are_not_comparable() -> None:
    with pytest.raises(NotComparable, match="differ in step 1"):
        agree(graph_of([]), graph_of([], label="Cook"))


def test_the_command_prints_all_forms(tmp_path: Path) -> None:
    steps = {"0": "START", "1": "A-A", "2": "B-B", "3": "END"}
    for name, edges in (
        ("ann.json", [[0, 1], [1, 2], [2, 3]]),
        ("ben.json", [[0, 1], [0, 2], [1, 3], [2, 3]]),
    ):
        (tmp_path / name).write_text(json.dumps({"steps": steps, "edges": edges}))
    arguments = ["agree", str(tmp_path / "ann.json"), str(tmp_path / "ben.json")]
    answer = json.loads(CliRunner().invoke(main, ["graph", *arguments, "--json"]).stdout)
    assert answer["schema"] == "graph-agree/1"
    assert (answer["closure"]["f1"], answer["order_overlap"], answer["only_first"]) == (0.0, 0.5, [[1, 2]])
    assert answer["fastening"] is None, "this form has no ticks"
    assert "valid orders in common: 50.0%" in CliRunner().invoke(main, ["graph", *arguments]).stdout


def test_ticks_of_fastened_steps_are_compared_one_by_one(tmp_path: Path) -> None:
    texts = ["start", "attach wheel to axle", "attach axle to base", "attach roof to base", "end"]
    for name, ticked in (("ann.json", {1, 2}), ("ben.json", {2, 3, 4})):
        nodes = [
            {"id": "100" if node == 4 else str(node), "data": {"label": text, "checked": node in ticked}}
            for node, text in enumerate(texts)
        ]
        toy = {"toy_id": "a16", "nodes": nodes, "edges": []}
        (tmp_path / name).write_text(json.dumps({"metadata": {"total": 1}, "examples": [toy]}))
    arguments = ["graph", "agree", str(tmp_path / "ann.json"), str(tmp_path / "ben.json")]
    assert json.loads(CliRunner().invoke(main, [*arguments, "--json"]).stdout)["fastening"] == 1 / 3
    assert "steps marked alike as fastened: 33.3%" in CliRunner().invoke(main, arguments).stdout


@pytest.mark.slow
def test_edge_evidence_adds_up_and_names_edges_that_are_often_broken(
    shared_data: Callable[[str], Path],
) -> None:
    folder = shared_data("captaincook4d")
    graphs, annotations = read_task_graphs(folder), read_annotations(folder)
    expected = json.loads((folder / "expected.json").read_text())["recipes"]
    for stem, graph in graphs.items():
        edges = weigh_edges(*observations(graph, stem, annotations))
        late = sum(len(edge.recordings["late"]) + len(edge.recordings["hard"]) for edge in edges)
        assert late == expected[stem]["late_edges"]
        assert sum(len(edge.without_first) for edge in edges) == expected[stem]["absent_predecessor_edges"]
        broken = {name for edge in edges for name in edge.broken_in_normal}
        assert bool(broken) == bool(expected[stem]["normal_recordings_with_order_violation"])
        for edge in edges:
            assert set(edge.broken_in_normal) <= {*edge.recordings["late"], *edge.recordings["hard"]}
            assert edge.is_challenged == bool(edge.broken_in_normal)

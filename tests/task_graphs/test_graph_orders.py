"""Counts and draws of orders agree with brute force, chi-square tests and the published numbers."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_runs import examples
from scipy.stats import chi2

from kitchensync.task_graphs.errors import CyclicGraph, TooManyOrders, TooManyStates
from kitchensync.task_graphs.formats.graph_files import read_graph
from kitchensync.task_graphs.model import Edge, Graph, Step
from kitchensync.task_graphs.order.closure import Relation, relation
from kitchensync.task_graphs.order.orders import Orders, count_orders, draw_orders, draw_perfect

N_POSET = [(1, 3), (2, 3), (2, 4)]
"""The smallest order that is neither series nor parallel: five orders."""
FENCE = [(1, 5), (2, 5), (2, 6), (3, 6), (3, 7), (4, 7)]
"""Indecomposable too, seven steps."""


def graph_of(count: int, edges: list[Edge], name: str = "made.json") -> Graph:
    return Graph(name, tuple(Step(node, f"Do-Do thing {node}") for node in range(1, count + 1)), tuple(edges))


def brute_force(count: int, edges: list[Edge]) -> set[tuple[int, ...]]:
    """Return all permutations that keep every edge, by definition."""
    orders = set()
    for order in itertools.permutations(range(1, count + 1)):
        place = {node: index for index, node in enumerate(order)}
        if all(place[before] < place[after] for before, after in edges):
            orders.add(order)
    return orders


@st.composite
def random_dags(draw: st.DrawFn) -> tuple[int, list[Edge]]:
    count = draw(st.integers(0, 7))
    names = draw(st.permutations(range(1, count + 1)))
    pairs = list(itertools.combinations(names, 2))
    return count, draw(st.lists(st.sampled_from(pairs), unique=True) if pairs else st.just([]))


@examples(500)
@given(random_dags())
def test_ranks_are_exactly_the_valid_orders(dag: tuple[int, list[Edge]]) -> None:
    orders = Orders(relation(graph_of(*dag)))
    expected = brute_force(*dag)
    assert orders.total == len(expected)
    assert {orders.unrank(rank) for rank in range(orders.total)} == expected


@examples(200)
@given(random_dags())
def test_down_sets_are_the_prefixes_of_orders(dag: tuple[int, list[Edge]]) -> None:
    prefixes = {frozenset(order[:k]) for order in brute_force(*dag) for k in range(len(order) + 1)}
    assert Orders(relation(graph_of(*dag))).down_sets == len(prefixes)


@examples(100)
@given(random_dags(), st.integers(0, 2**32))
def test_a_perfect_draw_is_a_valid_order(dag: tuple[int, list[Edge]], seed: int) -> None:
    assert draw_perfect(relation(graph_of(*dag)), random.Random(seed)) in brute_force(*dag)


def test_published_graphs_have_the_published_counts(shared_data: Callable[[str], Path]) -> None:
    expected = json.loads(shared_data("captaincook4d/expected.json").read_text())["graphs"]
    paths = sorted(shared_data("captaincook4d/task_graphs").glob("*.json"))
    assert len(paths) == len(expected)
    for path in paths:
        orders = Orders(relation(read_graph(path)))
        assert orders.total == expected[path.stem]["topological_orders"], path.name
        assert orders.down_sets == expected[path.stem]["down_sets"], path.name


def test_published_graphs_with_few_orders_list_them_all(shared_data: Callable[[str], Path]) -> None:
    checked = 0
    for path in sorted(shared_data("captaincook4d/task_graphs").glob("*.json")):
        graph = read_graph(path)
        if count_orders(graph) <= 300:
            orders = draw_orders(graph, count=1000, seed=1).orders
            assert len(orders) == count_orders(graph)
            everything = extend((), {step.node for step in graph.steps}, graph.edges)
            assert len(everything) == len(set(everything)) == len(orders)
            assert set(orders) == set(everything)
            checked += 1
    assert checked >= 11


def extend(done: tuple[int, ...], remaining: set[int], edges: tuple[Edge, ...]) -> list[tuple[int, ...]]:
    """Return all orders by plain recursion over the possible next steps."""
    if not remaining:
        return [done]
    ready = [node for node in remaining if not any(b in remaining for b, a in edges if a == node)]
    return [order for node in ready for order in extend((*done, node), remaining - {node}, edges)]


def chi_square(counts: Counter[tuple[int, ...]], expected: set[tuple[int, ...]], draws: int) -> float:
    """Return the probability of counts at least this uneven if all orders are equally likely."""
    assert set(counts) <= expected
    mean = draws / len(expected)
    statistic = sum((counts[order] - mean) ** 2 / mean for order in expected)
    return float(chi2.sf(statistic, len(expected) - 1))


def naive(order: Relation, rng: random.Random) -> tuple[int, ...]:
    """Draw a random possible next step each time, which is not uniform."""
    done, drawn = 0, []
    while len(drawn) < len(order.items):
        ready = [i for i, before in enumerate(order.before) if not done >> i & 1 and not before & ~done]
        chosen = rng.choice(ready)
        done |= 1 << chosen
        drawn.append(order.items[chosen])
    return tuple(drawn)


MIXED = [(1, 2), (3, 4), *[(a + 4, b + 4) for a, b in N_POSET], (2, 9), (4, 9)]
"""Parallel chains, a joining step and an indecomposable part."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "edges"), [(4, N_POSET), (7, FENCE), (5, [(1, 2), (3, 4)])], ids=["n", "fence", "two-chains"]
)
def test_draws_are_uniform_and_the_naive_sampler_is_not(count: int, edges: list[Edge]) -> None:
    graph, expected = graph_of(count, edges), brute_force(count, edges)
    draws = 100 * len(expected)
    by_seed = Counter(draw_orders(graph, count=1, seed=seed).orders[0] for seed in range(draws))
    assert chi_square(by_seed, expected, draws) > 1e-3
    rng, order = random.Random(7), relation(graph)
    assert chi_square(Counter(naive(order, rng) for _ in range(draws)), expected, draws) < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "edges"), [(4, N_POSET), (6, FENCE[:4]), (5, [])], ids=["n", "fence", "free"]
)
def test_the_perfect_sampler_is_uniform(count: int, edges: list[Edge]) -> None:
    expected, order, rng = brute_force(count, edges), relation(graph_of(count, edges)), random.Random(11)
    draws = 60 * len(expected)
    assert chi_square(Counter(draw_perfect(order, rng) for _ in range(draws)), expected, draws) > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(
    "stem",
    [
        "microwaveeggsandwich",
        pytest.param(
            "buttercorncup",
            marks=pytest.mark.promise(
                "Task graphs, orders and error scripts are what the published definitions say"
            ),
        ),
    ],
)
def test_a_published_graph_is_uniform_and_the_naive_sampler_is_not(
    shared_data: Callable[[str], Path], stem: str
) -> None:
    graph = read_graph(shared_data(f"captaincook4d/task_graphs/{stem}.json"))
    expected = set(extend((), {step.node for step in graph.steps}, graph.edges))
    draws = 200 * len(expected)
    counts = Counter(draw_orders(graph, count=1, seed=seed).orders[0] for seed in range(draws))
    assert chi_square(counts, expected, draws) > 1e-3
    rng, order = random.Random(7), relation(graph)
    assert chi_square(Counter(naive(order, rng) for _ in range(draws)), expected, draws) < 1e-9


def test_mixed_parts_agree_with_plain_recursion() -> None:
    graph = graph_of(9, MIXED)
    orders = Orders(relation(graph))
    expected = extend((), set(range(1, 10)), tuple(MIXED))
    assert orders.total == len(expected)
    assert set(draw_orders(graph, count=orders.total, seed=3).orders) == set(expected)


def test_orders_depend_only_on_the_seed() -> None:
    graph = graph_of(9, MIXED)
    first = draw_orders(graph, count=20, seed=5)
    assert draw_orders(graph, count=20, seed=5) == first
    assert draw_orders(graph, count=20, seed=6) != first
    assert len(set(first.orders)) == 20
    assert first.sampler == "dp"


def test_fewer_orders_than_requested_are_given_once_with_a_note() -> None:
    drawn = draw_orders(graph_of(4, N_POSET), count=20, seed=0)
    assert sorted(drawn.orders) == sorted(brute_force(4, N_POSET))
    assert drawn.note == "the graph has 5 orders, 20 were requested: all are returned"


def test_counts_of_random_graphs_agree_with_plain_recursion() -> None:
    rng = random.Random(2026)
    for _ in range(500):
        count = rng.randrange(1, 8)
        density = rng.choice([0.15, 0.3, 0.5])
        names = rng.sample(range(1, count + 1), count)
        edges = [pair for pair in itertools.combinations(names, 2) if rng.random() < density]
        graph = graph_of(count, edges)
        assert count_orders(graph) == len(extend((), set(range(1, count + 1)), tuple(edges)))


def test_forty_free_steps_need_no_table() -> None:
    orders = Orders(relation(graph_of(40, [])))
    product = 1
    for factor in range(1, 41):
        product *= factor
    assert (orders.total, orders.table_states) == (product, 0)
    assert len(draw_orders(graph_of(40, []), count=50, seed=1).orders) == 50


def test_beyond_the_budget_the_perfect_sampler_is_used_with_a_note() -> None:
    graph = graph_of(7, FENCE)
    with pytest.raises(TooManyStates, match="more than 20 sets"):
        Orders(relation(graph), budget=20)
    drawn = draw_orders(graph, count=1, seed=4, budget=20)
    assert (drawn.total, drawn.sampler) == (None, "huber")
    assert drawn.orders[0] in brute_force(7, FENCE)
    assert "Huber" in drawn.note


def test_the_bound_on_uncounted_orders_is_true() -> None:
    with pytest.raises(TooManyOrders, match="at most 1 orders can be drawn"):
        draw_orders(graph_of(7, FENCE), count=2, seed=4, budget=20)


@pytest.mark.slow
def test_a_wide_random_graph_switches_instead_of_hanging() -> None:
    rng = random.Random(1)
    edges = [(a, b) for a, b in itertools.combinations(range(1, 31), 2) if rng.random() < 0.1]
    drawn = draw_orders(graph_of(30, edges), count=3, seed=1, budget=20_000)
    assert drawn.sampler == "huber"
    for order in drawn.orders:
        place = {node: index for index, node in enumerate(order)}
        assert sorted(order) == list(range(1, 31))
        assert all(place[before] < place[after] for before, after in edges)


def test_graphs_too_large_to_count_or_draw_are_refused() -> None:
    edges = [(a, b + 100) for a in range(1, 101) for b in (a, a % 100 + 1)]
    with pytest.raises(TooManyOrders, match=r"200 steps are too many.*; add the edges"):
        draw_orders(graph_of(200, edges), count=1, seed=1, budget=1000)


def test_a_cycle_is_named() -> None:
    with pytest.raises(
        CyclicGraph, match=r"2 \(Do thing 2\) -> 3 \(Do thing 3\) -> 2; remove one of these edges"
    ):
        draw_orders(graph_of(4, [(1, 2), (2, 3), (3, 2), (3, 4)]), count=1, seed=0)

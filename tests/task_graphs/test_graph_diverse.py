"""Diverse sets of orders: their coverage is correct, and recorded orders are not drawn again."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from kitchensync.cli import main
from kitchensync.task_graphs.formats.graph_files import read_graph
from kitchensync.task_graphs.model import Graph, Step
from kitchensync.task_graphs.order.diverse import draw_diverse
from kitchensync.task_graphs.order.orders import draw_orders


def shares(orders: list[tuple[int, ...]], everything: list[tuple[int, ...]]) -> tuple[float, float]:
    """Return the shares of pair directions and of successions shown, of those that differ between orders."""

    def pairs(some: list[tuple[int, ...]]) -> set[tuple[int, int]]:
        return {pair for order in some for pair in itertools.combinations(order, 2)}

    def successions(some: list[tuple[int, ...]]) -> set[tuple[int, int]]:
        return {pair for order in some for pair in itertools.pairwise(order)}

    both_ways = {(a, b) for a, b in pairs(everything) if (b, a) in pairs(everything)}
    possible = successions(everything)
    return len(pairs(orders) & both_ways) / max(len(both_ways), 1), len(successions(orders) & possible) / len(
        possible
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "stem", ["buttercorncup", "ramen", "cheesepimiento", "tomatomozzarellasalad", "zoodles"]
)
def test_coverage_is_correct_and_better_than_plain_draws(
    shared_data: Callable[[str], Path], stem: str
) -> None:
    graph = read_graph(shared_data(f"captaincook4d/task_graphs/{stem}.json"))
    everything = list(draw_orders(graph, count=100_000, seed=0).orders)
    sample = draw_diverse(graph, count=6, seed=1)
    shown = shares(list(sample.orders), everything)
    assert shown[0] == pytest.approx(sample.coverage.pairs[0] / sample.coverage.pairs[1])
    assert shown[1] == pytest.approx(sample.coverage.successions[0] / sample.coverage.successions[1])
    plain = [shares(list(draw_orders(graph, count=6, seed=seed).orders), everything) for seed in range(20)]
    assert shown[0] >= max(pair for pair, _ in plain) - 1e-9
    assert shown[1] > sum(successions for _, successions in plain) / len(plain)


def test_sixteen_orders_show_nearly_everything(shared_data: Callable[[str], Path]) -> None:
    pairs, successions = [], []
    for path in sorted(shared_data("captaincook4d/task_graphs").glob("*.json")):
        coverage = draw_diverse(read_graph(path), count=16, seed=1).coverage
        pairs.append(coverage.pairs[0] / coverage.pairs[1])
        successions.append(coverage.successions[0] / coverage.successions[1])
    assert sum(pairs) / len(pairs) >= 0.999
    assert sum(successions) / len(successions) >= 0.991


def test_recorded_orders_are_not_drawn_again(shared_data: Callable[[str], Path]) -> None:
    graph = read_graph(shared_data("captaincook4d/task_graphs/pinwheels.json"))
    everything = draw_orders(graph, count=9, seed=0).orders
    sample = draw_diverse(graph, count=5, seed=1, recorded=everything[:6])
    assert set(sample.orders) == set(everything[6:])
    assert (
        sample.note
        == "the graph has 9 orders, 6 of them recorded already; 5 were requested: all 3 new orders are returned"
    )
    used_up = draw_diverse(graph, count=1, seed=1, recorded=everything)
    assert (used_up.orders, used_up.note) == (
        (),
        "all 9 orders of the graph are recorded already: none is new",
    )


def test_recorded_orders_count_towards_coverage() -> None:
    free = Graph("free.json", tuple(Step(n, f"Do-Do {n}") for n in (1, 2, 3)), ())
    [after] = draw_diverse(free, count=1, seed=3, recorded=[(1, 2, 3)]).orders
    assert after == (3, 2, 1)


def test_orders_of_a_graph_beyond_the_budget_are_sampled() -> None:
    crown = tuple((a, b + 8) for a in range(1, 9) for b in (a, a % 8 + 1))
    graph = Graph("crown.json", tuple(Step(n, f"Do-Do {n}") for n in range(1, 17)), crown)
    sample = draw_diverse(graph, count=4, seed=1, budget=1_000)
    assert (sample.total, sample.sampler, len(set(sample.orders))) == (None, "huber", 4)
    for order in sample.orders:
        assert all(order.index(u) < order.index(v) for u, v in crown)


def test_the_command_takes_recorded_orders_from_a_file_and_a_folder(
    shared_data: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = shared_data("captaincook4d")
    path = str(folder / "task_graphs" / "spicedhotchocolate.json")
    first = CliRunner().invoke(main, ["graph", "orders", path, "--count", "4", "--diverse", "--json"])
    (tmp_path / "done.json").write_text(first.stdout)
    answer = json.loads(first.stdout)
    assert answer["coverage"]["pairs"][0] == answer["coverage"]["pairs"][1]
    second = CliRunner().invoke(
        main, ["graph", "orders", path, "--count", "4", "--recorded", str(tmp_path / "done.json"), "--json"]
    )
    drawn = [tuple(order) for result in (first, second) for order in json.loads(result.stdout)["orders"]]
    assert len(drawn) == len(set(drawn)) == 6
    assert "all 2 new orders are returned" in second.stderr
    third = CliRunner().invoke(
        main, ["graph", "orders", path, "--count", "2", "--recorded", str(folder), "--json"]
    )
    assert json.loads(third.stdout)["recorded"] == 16
    (tmp_path / "other.json").write_text("[[1, 99]]")
    refused = CliRunner().invoke(main, ["graph", "orders", path, "--recorded", str(tmp_path / "other.json")])
    assert refused.exit_code == 1
    assert "there is no step 99" in refused.stderr

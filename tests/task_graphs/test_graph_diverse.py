"""Sets of orders that show a lot: coverage counted again here, and never what was recorded already."""

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
    """Pair directions and successions seen, of all that any order of the graph shows in more than one direction."""

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
def test_coverage_is_counted_right_and_beats_plain_draws(
    shared_data: Callable[[str], Path], stem: str
) -> None:
    graph = read_graph(shared_data(f"captaincook4d/task_graphs/{stem}.json"))
    everything = list(draw_orders(graph, count=100_000, seed=0).orders)
    found = draw_diverse(graph, count=6, seed=1)
    seen = shares(list(found.orders), everything)
    assert seen[0] == pytest.approx(found.coverage.pairs[0] / found.coverage.pairs[1])
    assert seen[1] == pytest.approx(found.coverage.successions[0] / found.coverage.successions[1])
    plain = [shares(list(draw_orders(graph, count=6, seed=seed).orders), everything) for seed in range(20)]
    assert seen[0] >= max(pair for pair, _ in plain) - 1e-9
    assert seen[1] > sum(one for _, one in plain) / len(plain)


def test_sixteen_orders_show_nearly_everything(shared_data: Callable[[str], Path]) -> None:
    pairs, successions = [], []
    for path in sorted(shared_data("captaincook4d/task_graphs").glob("*.json")):
        coverage = draw_diverse(read_graph(path), count=16, seed=1).coverage
        pairs.append(coverage.pairs[0] / coverage.pairs[1])
        successions.append(coverage.successions[0] / coverage.successions[1])
    assert sum(pairs) / len(pairs) >= 0.999
    assert sum(successions) / len(successions) >= 0.991


def test_recorded_orders_are_not_given_again(shared_data: Callable[[str], Path]) -> None:
    graph = read_graph(shared_data("captaincook4d/task_graphs/pinwheels.json"))
    everything = draw_orders(graph, count=9, seed=0).orders
    found = draw_diverse(graph, count=5, seed=1, recorded=everything[:6])
    assert set(found.orders) == set(everything[6:])
    assert (
        found.note
        == "the graph has 9 orders, 6 of them recorded already; 5 were requested: all 3 new orders are returned"
    )
    used_up = draw_diverse(graph, count=1, seed=1, recorded=everything)
    assert (used_up.orders, used_up.note) == (
        (),
        "all 9 orders of the graph are recorded already: none is new",
    )


def test_recorded_orders_count_as_seen() -> None:
    free = Graph("free.json", tuple(Step(n, f"Do-Do {n}") for n in (1, 2, 3)), ())
    [after] = draw_diverse(free, count=1, seed=3, recorded=[(1, 2, 3)]).orders
    assert after == (3, 2, 1)


def test_a_graph_beyond_the_budget_still_gives_a_set() -> None:
    crown = tuple((a, b + 8) for a in range(1, 9) for b in (a, a % 8 + 1))
    graph = Graph("crown.json", tuple(Step(n, f"Do-Do {n}") for n in range(1, 17)), crown)
    found = draw_diverse(graph, count=4, seed=1, budget=1_000)
    assert (found.total, found.sampler, len(set(found.orders))) == (None, "huber", 4)
    for order in found.orders:
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
    given = [tuple(order) for one in (first, second) for order in json.loads(one.stdout)["orders"]]
    assert len(given) == len(set(given)) == 6
    assert "all 2 new orders are returned" in second.stderr
    third = CliRunner().invoke(
        main, ["graph", "orders", path, "--count", "2", "--recorded", str(folder), "--json"]
    )
    assert json.loads(third.stdout)["recorded"] == 16
    (tmp_path / "other.json").write_text("[[1, 99]]")
    refused = CliRunner().invoke(main, ["graph", "orders", path, "--recorded", str(tmp_path / "other.json")])
    assert refused.exit_code == 1
    assert "there is no step 99" in refused.stderr

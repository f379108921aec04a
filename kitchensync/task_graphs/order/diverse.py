"""Choose a diverse set of orders: both directions of every unordered pair, every possible succession.

Greedy choice from a pool of exact uniform draws (from all orders if there are few). Recorded orders count as covered
and are not chosen again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from kitchensync.task_graphs.model import Graph
from kitchensync.task_graphs.order.closure import Relation, relation
from kitchensync.task_graphs.order.orders import STATE_BUDGET, Order, draw_orders, uncounted_limit

POOL = 600
FEW = 2_000
"""Graphs with at most this many orders have all of them in the pool."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """Coverage of a set of orders, including recorded orders.

    `pairs`: directions of pairs that the graph does not order; `successions`: pairs (u, v) with v directly after u;
    each as (covered, possible). `closest`: smallest number of pairs in which two of the new orders differ.
    """

    pairs: tuple[int, int]
    successions: tuple[int, int]
    closest: int | None


@dataclass(frozen=True, slots=True)
class DiverseSet:
    """New orders, sorted by their gain in coverage; `total` is None if it could not be counted."""

    total: int | None
    sampler: str
    orders: tuple[Order, ...]
    coverage: Coverage
    note: str


class _Views:
    """Bit masks of orders: their pair directions and successions."""

    def __init__(self, order: Relation) -> None:
        items = order.items
        self.pair_bit, self.succession_bit = dict[tuple[int, int], int](), dict[tuple[int, int], int]()
        for i, j in ((i, j) for i in range(len(items)) for j in range(len(items)) if i != j):
            before, after = order.before[j] >> i & 1, order.before[i] >> j & 1
            if not before and not after:
                self.pair_bit[items[i], items[j]] = 1 << len(self.pair_bit)
            if not after and not (before and order.after[i] & order.before[j]):
                self.succession_bit[items[i], items[j]] = 1 << len(self.succession_bit)

    def pairs(self, order: Sequence[int]) -> int:
        """Return the directions of the unordered pairs in an order."""
        return sum(self.pair_bit.get(pair, 0) for pair in combinations(order, 2))

    def successions(self, order: Sequence[int]) -> int:
        """Return the successions of an order."""
        return sum(self.succession_bit.get(pair, 0) for pair in pairwise(order))


def draw_diverse(
    graph: Graph, *, count: int, seed: int, recorded: Iterable[Sequence[int]] = (), budget: int = STATE_BUDGET
) -> DiverseSet:
    """Choose `count` new orders, or fewer if the graph has fewer. Raises CyclicGraph, TooManyOrders."""
    done = [tuple(dict.fromkeys(order)) for order in recorded]
    drawn = draw_orders(graph, count=1, seed=seed, budget=budget)
    if drawn.total is None:
        size = max(count, uncounted_limit(len(graph.steps), budget=budget) // 4)
        pool = draw_orders(graph, count=size, seed=seed, budget=budget).orders
    else:
        size = drawn.total if drawn.total <= FEW else max(POOL, 4 * count) + len(done)
        pool = draw_orders(graph, count=min(size, drawn.total), seed=seed, budget=budget).orders
    views = _Views(relation(graph))
    fresh = [order for order in pool if order not in set(done)]
    chosen = _greedy(views, fresh, done, count)
    return DiverseSet(
        drawn.total,
        drawn.sampler,
        tuple(chosen),
        _coverage(views, done, chosen),
        _note(count, len(chosen), drawn.total, len(set(pool) & set(done))),
    )


class _Covered:
    """The pair directions and successions of the orders so far."""

    def __init__(self, views: _Views, done: Iterable[Order]) -> None:
        self.views = views
        self.pairs = self.successions = 0
        for order in done:
            self.add(views.pairs(order), views.successions(order))

    def add(self, pairs: int, successions: int) -> None:
        """Add an order."""
        self.pairs |= pairs
        self.successions |= successions

    def gain(self, pairs: int, successions: int) -> float:
        """Return the share of pair directions plus the share of successions that an order would add."""
        new_pairs = (pairs & ~self.pairs).bit_count() / max(len(self.views.pair_bit), 1)
        new_successions = (successions & ~self.successions).bit_count() / max(
            len(self.views.succession_bit), 1
        )
        return new_pairs + new_successions


def _greedy(views: _Views, pool: list[Order], done: list[Order], count: int) -> list[Order]:
    """Choose the order with the largest gain; among equals the one farthest from the chosen orders."""
    covered = _Covered(views, done)
    masks = {order: (views.pairs(order), views.successions(order)) for order in pool}
    nearest = dict.fromkeys(pool, len(views.pair_bit))
    chosen: list[Order] = []
    while nearest and len(chosen) < count:
        best = max(nearest, key=lambda order: (covered.gain(*masks[order]), nearest[order]))
        del nearest[best]
        chosen.append(best)
        covered.add(*masks[best])
        for order in nearest:
            nearest[order] = min(nearest[order], (masks[order][0] & ~masks[best][0]).bit_count())
    return chosen


def _coverage(views: _Views, done: list[Order], chosen: list[Order]) -> Coverage:
    covered = _Covered(views, [*done, *chosen])
    masks = [views.pairs(order) for order in chosen]
    return Coverage(
        (covered.pairs.bit_count(), len(views.pair_bit)),
        (covered.successions.bit_count(), len(views.succession_bit)),
        min(((a & ~b).bit_count() for a, b in combinations(masks, 2)), default=None),
    )


def _note(requested: int, chosen: int, total: int | None, recorded: int) -> str:
    if chosen == requested:
        return ""
    if total is None:
        return f"{chosen} different orders were drawn, {requested} were requested"
    if chosen == 0:
        return f"all {total} orders of the graph are recorded already: none is new"
    of_them = f", {recorded} of them recorded already" if recorded else ""
    return f"the graph has {total} orders{of_them}; {requested} were requested: all {chosen} new orders are returned"

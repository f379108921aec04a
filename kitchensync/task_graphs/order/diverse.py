"""Choose orders that show a lot together: both directions of every free pair, every possible succession.

Greedy from a pool of exact uniform draws (all orders where there are few). What was already recorded counts as seen
and is not given again.
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
"""Graphs with at most this many orders: all of them are the pool."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """What a set of orders shows, recorded ones included.

    `pairs`: directions of pairs that the graph leaves open; `successions`: (u, v) with v straight after u that some
    order has; each as (seen, possible). `closest`: least number of pairs in which two of the new orders differ.
    """

    pairs: tuple[int, int]
    successions: tuple[int, int]
    closest: int | None


@dataclass(frozen=True, slots=True)
class DiverseSet:
    """New orders in the sequence in which they add most; `total` is None when it could not be counted."""

    total: int | None
    sampler: str
    orders: tuple[Order, ...]
    coverage: Coverage
    note: str


class _Views:
    """Orders as bit masks: which pair directions and which successions each of them shows."""

    def __init__(self, order: Relation) -> None:
        items = order.items
        self.pair_bit, self.succession_bit = dict[tuple[int, int], int](), dict[tuple[int, int], int]()
        for i, j in ((i, j) for i in range(len(items)) for j in range(len(items)) if i != j):
            before, after = order.before[j] >> i & 1, order.before[i] >> j & 1
            if not before and not after:
                self.pair_bit[items[i], items[j]] = 1 << len(self.pair_bit)
            if not after and not (before and order.after[i] & order.before[j]):
                self.succession_bit[items[i], items[j]] = 1 << len(self.succession_bit)

    def pairs(self, shown: Sequence[int]) -> int:
        """Return the free pairs in the direction in which this order has them."""
        return sum(self.pair_bit.get(pair, 0) for pair in combinations(shown, 2))

    def successions(self, shown: Sequence[int]) -> int:
        """Return the possible successions of this order."""
        return sum(self.succession_bit.get(pair, 0) for pair in pairwise(shown))


def draw_diverse(
    graph: Graph, *, count: int, seed: int, recorded: Iterable[Sequence[int]] = (), budget: int = STATE_BUDGET
) -> DiverseSet:
    """Choose `count` new orders; fewer when the graph has no more. Raises CyclicGraph, TooManyOrders."""
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


class _Seen:
    """What the orders so far show."""

    def __init__(self, views: _Views, done: Iterable[Order]) -> None:
        self.views = views
        self.pairs = self.successions = 0
        for order in done:
            self.add(views.pairs(order), views.successions(order))

    def add(self, pairs: int, successions: int) -> None:
        """Count an order in."""
        self.pairs |= pairs
        self.successions |= successions

    def gain(self, pairs: int, successions: int) -> float:
        """Return how much of all there is to see an order would add."""
        new_pairs = (pairs & ~self.pairs).bit_count() / max(len(self.views.pair_bit), 1)
        new_successions = (successions & ~self.successions).bit_count() / max(
            len(self.views.succession_bit), 1
        )
        return new_pairs + new_successions


def _greedy(views: _Views, pool: list[Order], done: list[Order], count: int) -> list[Order]:
    """Take the order that adds most; among equals the one farthest from those taken."""
    seen = _Seen(views, done)
    masks = {order: (views.pairs(order), views.successions(order)) for order in pool}
    nearest = dict.fromkeys(pool, len(views.pair_bit))
    chosen: list[Order] = []
    while nearest and len(chosen) < count:
        best = max(nearest, key=lambda order: (seen.gain(*masks[order]), nearest[order]))
        del nearest[best]
        chosen.append(best)
        seen.add(*masks[best])
        for order in nearest:
            nearest[order] = min(nearest[order], (masks[order][0] & ~masks[best][0]).bit_count())
    return chosen


def _coverage(views: _Views, done: list[Order], chosen: list[Order]) -> Coverage:
    seen = _Seen(views, [*done, *chosen])
    masks = [views.pairs(order) for order in chosen]
    return Coverage(
        (seen.pairs.bit_count(), len(views.pair_bit)),
        (seen.successions.bit_count(), len(views.succession_bit)),
        min(((a & ~b).bit_count() for a, b in combinations(masks, 2)), default=None),
    )


def _note(asked: int, given: int, total: int | None, used: int) -> str:
    if given == asked:
        return ""
    if total is None:
        return f"{given} different orders were found, {asked} were asked"
    if given == 0:
        return f"all {total} orders of the graph are recorded already: none is new"
    recorded = f", {used} of them recorded already" if used else ""
    return f"the graph has {total} orders{recorded}; {asked} were asked: all {given} that are left are given"

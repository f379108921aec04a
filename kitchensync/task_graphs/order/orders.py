"""Count the valid orders of a recipe exactly, and draw them exactly uniformly.

The partial order is first split: parts without connections are *parallel* (every shuffle of their orders is valid),
parts that completely follow each other are *series*. A part that cannot be split needs a table over its down-sets
(sets of done steps closed under prerequisites): f(D) = sum of f(D + v) over the steps v that may come next. Every
valid order has a rank in [0, total), so a uniform rank gives a uniform order.

Where the tables would be too large, orders are drawn by the perfect sampler of M. Huber, "Fast perfect sampling from
linear extensions", Discrete Mathematics 306 (2006): coupling from the past with a bounding chain.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from kitchensync.task_graphs.errors import TooManyOrders, TooManyStates
from kitchensync.task_graphs.model import Graph
from kitchensync.task_graphs.order.closure import Relation, relation
from kitchensync.task_graphs.order.parts import Parallel, Part, Series, SingleStep, Table, components

UNKNOWN = -1

Choice = tuple[int, bool]


def draw_perfect(order: Relation, rng: random.Random) -> tuple[int, ...]:
    """Return one valid order as node ids, all with exactly the same probability."""
    size = len(order.items)
    if size < 2:
        return order.items
    moves = size * size
    runs: list[list[Choice]] = []  # the last run is the farthest in the past
    state: list[int] | None = None
    while state is None:
        choices = [(rng.randrange(size - 1), rng.random() < 0.5) for _ in range(moves)]
        runs.append(choices)
        bound = _Bound(order)
        for place, coin in choices:
            bound.move(place, coin)
        state = None if bound.unknown else bound.places  # None: several states are still possible
        moves *= 2
    for choices in reversed(runs[:-1]):
        state = _replay(order, choices, state)
    return tuple(order.items[index] for index in state)


class _Bound:
    """The bounding sequence: items at the latest place each can have, UNKNOWN elsewhere."""

    def __init__(self, order: Relation) -> None:
        self.before = order.before
        arrivals = sorted(range(len(order.items)), key=lambda i: (order.before[i].bit_count(), i))
        self.arrivals = iter(arrivals)  # an item never enters before its prerequisites
        self.places = [UNKNOWN] * len(arrivals)
        self.unknown = len(arrivals)
        self._fill_last()

    def move(self, place: int, coin: bool) -> None:
        """Swap two neighbours if the coin is true and the order allows it; fill the last place."""
        first, second = self.places[place], self.places[place + 1]
        if coin and not _must_precede(self.before, first, second):
            self.places[place], self.places[place + 1] = second, first
            self._fill_last()

    def _fill_last(self) -> None:
        if self.places[-1] == UNKNOWN:
            self.places[-1] = next(self.arrivals)
            self.unknown -= 1


def _must_precede(before: tuple[int, ...], first: int, second: int) -> bool:
    return first != UNKNOWN and second != UNKNOWN and bool(before[second] >> first & 1)


def _replay(order: Relation, choices: list[Choice], state: list[int]) -> list[int]:
    """Move a state with the choices of the bounding sequence.

    The coin is inverted where the state's first item is the bound's second, so that the state stays inside the bound.
    """
    bound, state = _Bound(order), list(state)
    for place, coin in choices:
        first, second = state[place], state[place + 1]
        own_coin = coin != (first == bound.places[place + 1])
        if own_coin and not _must_precede(order.before, first, second):
            state[place], state[place + 1] = second, first
        bound.move(place, coin)
    return state


STATE_BUDGET = 300_000
"""Largest number of down-sets in all tables of a graph: about 1.5 s and 100 MB in the worst case."""
PERFECT_EFFORT = 2_500_000
"""Perfect draws times the cube of the number of steps that take about half a minute."""
LARGEST_PERFECT = 80
"""Largest number of steps for a perfect draw within seconds (its cost grows with the cube)."""

Order = tuple[int, ...]


class Splitter:
    """Splits a partial order into series and parallel parts with one budget of table states."""

    def __init__(self, order: Relation, budget: int) -> None:
        self.order, self.remaining = order, budget
        everything = (1 << len(order.items)) - 1
        self.comparable = [b | a for b, a in zip(order.before, order.after, strict=True)]
        self.incomparable = [everything & ~c & ~(1 << i) for i, c in enumerate(self.comparable)]

    def split(self, members: int) -> Part:
        """Return the part tree of these items. Raises TooManyStates."""
        if members.bit_count() == 1:
            return SingleStep(members.bit_length() - 1)
        parallel = components(members, self.comparable)
        if len(parallel) != 1:  # also for no items at all: an empty Parallel has one order
            return Parallel([self.split(part) for part in parallel])
        series = components(members, self.incomparable)
        if len(series) > 1:
            depth = {
                part: (self.order.before[part.bit_length() - 1] & members).bit_count() for part in series
            }
            return Series([self.split(part) for part in sorted(series, key=depth.__getitem__)])
        table = Table(self.order, members, self.remaining)
        self.remaining -= table.down_sets
        return table


class Orders:
    """All valid orders of a graph: their number, the order of a rank, and the size of the tables."""

    def __init__(self, order: Relation, *, budget: int = STATE_BUDGET) -> None:
        """Split and count. Raises TooManyStates."""
        splitter = Splitter(order, budget)
        self.items = order.items
        self._root = splitter.split((1 << len(order.items)) - 1)
        self.total = self._root.total
        self.down_sets = self._root.down_sets
        self.table_states = budget - splitter.remaining

    def unrank(self, rank: int) -> Order:
        """Return the order of a rank in [0, total) as node ids; different ranks give different orders."""
        if not 0 <= rank < self.total:
            raise IndexError(f"rank {rank} is not in [0, {self.total})")
        return tuple(self.items[index] for index in self._root.unrank(rank))


@dataclass(frozen=True, slots=True)
class Drawn:
    """Distinct orders in random sequence; `total` is None if it could not be counted within the budget."""

    total: int | None
    sampler: str
    orders: tuple[Order, ...]
    note: str


def count_orders(graph: Graph, *, budget: int = STATE_BUDGET) -> int:
    """Count the valid orders of a graph exactly. Raises CyclicGraph, TooManyStates."""
    return Orders(relation(graph), budget=budget).total


def is_valid_order(graph: Graph, order: Sequence[int]) -> bool:
    """Return whether an order has every step once, each after its prerequisites."""
    place = {node: at for at, node in enumerate(order)}
    if sorted(order) != [step.node for step in graph.steps]:
        return False
    return all(place[before] < place[after] for before, after in graph.inner_edges)


def draw_orders(graph: Graph, *, count: int, seed: int, budget: int = STATE_BUDGET) -> Drawn:
    """Draw `count` different valid orders, every set of them equally likely, or all orders if there are fewer.

    Within the budget by exact ranks (`dp`), above it by a perfect sampler that cannot count (`huber`). The same
    graph, count, seed and budget give the same orders. Raises CyclicGraph, TooManyOrders.
    """
    order = relation(graph)
    rng = random.Random(f"orders {seed}")  # a text is hashed: seeds k and -k would give the same numbers
    try:
        orders = Orders(order, budget=budget)
    except TooManyStates as error:
        return _draw_uncounted(graph, order, count, rng, budget, str(error))
    drawn, note = count, ""
    if orders.total < count:
        drawn = orders.total
        note = f"the graph has {orders.total} orders, {count} were requested: all are returned"
    return Drawn(orders.total, "dp", tuple(map(orders.unrank, _ranks(rng, orders.total, drawn))), note)


def draw_one(
    order: Relation, rng: random.Random, *, name: str, budget: int = STATE_BUDGET
) -> tuple[Order, str]:
    """Draw one uniform order of a relation; return it with the name of the sampler. Raises TooManyOrders."""
    try:
        orders = Orders(order, budget=budget)
    except TooManyStates as error:
        if len(order.items) > LARGEST_PERFECT:
            why = f"{error}, and {len(order.items)} steps are too many for the perfect sampler"
            raise TooManyOrders(name, why) from error
        return draw_perfect(order, rng), "huber"
    return orders.unrank(rng.randrange(orders.total)), "dp"


def _ranks(rng: random.Random, total: int, count: int) -> list[int]:
    """Draw different ranks in random sequence; `rng.sample` cannot handle totals above `sys.maxsize`."""
    if total <= sys.maxsize:
        return rng.sample(range(total), count)
    ranks: dict[int, None] = {}
    while len(ranks) < count:
        ranks[rng.randrange(total)] = None
    return list(ranks)


def uncounted_limit(size: int, *, budget: int = STATE_BUDGET) -> int:
    """Return the largest number of different orders of `size` steps to draw uncounted, in about half a minute.

    Every down-set begins an order, and an order has size + 1 down-sets. So there are at least twice as many orders
    as the limit.
    """
    return max(min(budget // (size + 1) // 2, PERFECT_EFFORT // size**3), 1)


def _draw_uncounted(
    graph: Graph, order: Relation, count: int, rng: random.Random, budget: int, why: str
) -> Drawn:
    size = len(order.items)
    if size > LARGEST_PERFECT:
        raise TooManyOrders(graph.name, f"{why}, and {size} steps are too many for the perfect sampler")
    allowed = uncounted_limit(size, budget=budget)
    if count > allowed:
        raise TooManyOrders(graph.name, f"{why}, so at most {allowed} orders can be drawn")
    drawn: dict[Order, None] = {}
    while len(drawn) < count:
        drawn[draw_perfect(order, rng)] = None
    note = f"{why}: drawn by Huber's perfect sampler, the total is unknown (at least {budget // (size + 1)})"
    return Drawn(None, "huber", tuple(drawn), note)

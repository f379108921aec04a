"""Count the valid orders of a recipe exactly, and draw them exactly uniformly.

The order is first split: parts that nothing connects are *parallel* (every shuffle of their orders is valid), parts
that stand wholly one after the other are *series*. Only what cannot be split needs a table over its down-sets (sets
of done steps closed under prerequisites): f(D) = sum of f(D + v) over the steps v that may come next. Every valid
order has a rank in [0, total): a uniform rank is a uniform order, all ranks are all orders.
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
    """Return one valid order as node ids, each with exactly equal probability."""
    size = len(order.items)
    if size < 2:
        return order.items
    moves = size * size
    runs: list[list[Choice]] = []  # the last run lies farthest in the past
    state: list[int] | None = None
    while state is None:
        choices = [(rng.randrange(size - 1), rng.random() < 0.5) for _ in range(moves)]
        runs.append(choices)
        state = _bounded_end(order, choices)
        moves *= 2
    for choices in reversed(runs[:-1]):
        state = _replay(order, choices, state)
    return tuple(order.items[index] for index in state)


class _Bound:
    """The bounding sequence: known items with the latest place each can have, UNKNOWN elsewhere."""

    def __init__(self, order: Relation) -> None:
        self.before = order.before
        arrivals = sorted(range(len(order.items)), key=lambda i: (order.before[i].bit_count(), i))
        self.arrivals = iter(arrivals)  # an item never enters before its prerequisites
        self.places = [UNKNOWN] * len(arrivals)
        self.unknown = len(arrivals)
        self._fill_last()

    def move(self, place: int, coin: bool) -> None:
        """Swap two neighbours when the coin says so and the order allows it; let the next item in."""
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


def _bounded_end(order: Relation, choices: list[Choice]) -> list[int] | None:
    """Run the bound alone; return the one state that is left, or None when several may be."""
    bound = _Bound(order)
    for place, coin in choices:
        bound.move(place, coin)
    return None if bound.unknown else bound.places


def _replay(order: Relation, choices: list[Choice], state: list[int]) -> list[int]:
    """Move a state by the bound's choices; the coins differ where the state's first is the bound's second."""
    bound, state = _Bound(order), list(state)
    for place, coin in choices:
        first, second = state[place], state[place + 1]
        own_coin = coin != (first == bound.places[place + 1])
        if own_coin and not _must_precede(order.before, first, second):
            state[place], state[place + 1] = second, first
        bound.move(place, coin)
    return state


STATE_BUDGET = 300_000
"""Down-sets in all tables of one graph together: about 1.5 s and 100 MB in the worst case."""
PERFECT_EFFORT = 2_500_000
LARGEST_PERFECT = 80
"""Steps up to which one perfect draw stays within seconds (its cost grows with the cube)."""

Order = tuple[int, ...]


class Splitter:
    """Split a partial order into series and parallel parts under one budget of table states."""

    def __init__(self, order: Relation, budget: int) -> None:
        self.order, self.left = order, budget
        everything = (1 << len(order.items)) - 1
        self.comparable = [b | a for b, a in zip(order.before, order.after, strict=True)]
        self.incomparable = [everything & ~c & ~(1 << i) for i, c in enumerate(self.comparable)]

    def split(self, members: int) -> Part:
        """Return the part tree of these items. Raises TooManyStates."""
        if members.bit_count() == 1:
            return SingleStep(members.bit_length() - 1)
        parallel = components(members, self.comparable)
        if len(parallel) != 1:  # also the empty order: a parallel of nothing has one order
            return Parallel([self.split(part) for part in parallel])
        series = components(members, self.incomparable)
        if len(series) > 1:
            depth = {
                part: (self.order.before[part.bit_length() - 1] & members).bit_count() for part in series
            }
            return Series([self.split(part) for part in sorted(series, key=depth.__getitem__)])
        table = Table(self.order, members, self.left)
        self.left -= table.down_sets
        return table


class Orders:
    """All valid orders of a graph: how many, which one has a rank, and what the counting took."""

    def __init__(self, order: Relation, *, budget: int = STATE_BUDGET) -> None:
        """Split and count. Raises TooManyStates."""
        splitter = Splitter(order, budget)
        self.items = order.items
        self._root = splitter.split((1 << len(order.items)) - 1)
        self.total = self._root.total
        self.down_sets = self._root.down_sets
        self.table_states = budget - splitter.left

    def unrank(self, rank: int) -> Order:
        """Return the order of a rank in [0, total) as node ids; different ranks are different orders."""
        if not 0 <= rank < self.total:
            raise IndexError(f"rank {rank} is not in [0, {self.total})")
        return tuple(self.items[index] for index in self._root.unrank(rank))


@dataclass(frozen=True, slots=True)
class Drawn:
    """Distinct orders in random sequence; `total` is None when it could not be counted within the budget."""

    total: int | None
    sampler: str
    orders: tuple[Order, ...]
    note: str


def count_orders(graph: Graph, *, budget: int = STATE_BUDGET) -> int:
    """Count the valid orders of a graph exactly. Raises CyclicGraph, TooManyStates."""
    return Orders(relation(graph), budget=budget).total


def is_valid_order(graph: Graph, order: Sequence[int]) -> bool:
    """Return whether an order has every step once, each after what it waits for."""
    place = {node: at for at, node in enumerate(order)}
    if sorted(order) != [step.node for step in graph.steps]:
        return False
    return all(place[before] < place[after] for before, after in graph.inner_edges)


def draw_orders(graph: Graph, *, count: int, seed: int, budget: int = STATE_BUDGET) -> Drawn:
    """Draw `count` different valid orders, every set of them equally likely; all orders when there are fewer.

    Within the budget by exact ranks (`dp`), beyond it by a perfect sampler that cannot count (`huber`). The
    same graph, count, seed and budget give the same orders. Raises CyclicGraph, TooManyOrders.
    """
    order = relation(graph)
    rng = random.Random(f"orders {seed}")  # as text: hashed, so that near and negative seeds differ
    try:
        orders = Orders(order, budget=budget)
    except TooManyStates as error:
        return _draw_uncounted(graph, order, count, rng, budget, str(error))
    wanted = min(count, orders.total)
    short = f"the graph has {orders.total} orders, {count} were asked: all are given"
    note = "" if wanted == count else short
    return Drawn(orders.total, "dp", tuple(map(orders.unrank, _ranks(rng, orders.total, wanted))), note)


def draw_one(
    order: Relation, rng: random.Random, *, name: str, budget: int = STATE_BUDGET
) -> tuple[Order, str]:
    """Draw one uniform order of a relation and say by which sampler. Raises TooManyOrders."""
    try:
        orders = Orders(order, budget=budget)
    except TooManyStates as error:
        if len(order.items) > LARGEST_PERFECT:
            why = f"{error}, and {len(order.items)} steps are too many for the perfect sampler"
            raise TooManyOrders(name, why) from error
        return draw_perfect(order, rng), "huber"
    return orders.unrank(rng.randrange(orders.total)), "dp"


def _ranks(rng: random.Random, total: int, count: int) -> list[int]:
    """Draw different ranks in random sequence, also where the total passes what `len` can say."""
    if total <= sys.maxsize:
        return rng.sample(range(total), count)
    ranks: dict[int, None] = {}
    while len(ranks) < count:
        ranks[rng.randrange(total)] = None
    return list(ranks)


def uncounted_limit(size: int, *, budget: int = STATE_BUDGET) -> int:
    """Return how many different orders of `size` steps may be drawn uncounted: within about half a minute.

    Every down-set begins an order, which begins with size + 1 of them: so there are at least twice as many orders.
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
        raise TooManyOrders(graph.name, f"{why}, so at most {allowed} orders are drawn at once")
    drawn: dict[Order, None] = {}
    while len(drawn) < count:
        drawn[draw_perfect(order, rng)] = None
    note = (
        f"{why}: drawn by Huber's perfect sampler, the total is not known (at least {budget // (size + 1)})"
    )
    return Drawn(None, "huber", tuple(drawn), note)

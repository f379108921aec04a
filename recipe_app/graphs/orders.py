"""Count the valid orders of a recipe exactly, and draw them exactly uniformly.

The order is first split: parts that nothing connects are *parallel* (every shuffle of their orders is valid), parts
that stand wholly one after the other are *series*. Only what cannot be split needs a table over its down-sets (sets
of done steps closed under prerequisites): f(D) = sum of f(D + v) over the steps v that may come next. Every valid
order has a rank in [0, total): a uniform rank is a uniform order, all ranks are all orders.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import comb, prod
from typing import Protocol

from recipe_app.errors import TooManyOrders, TooManyStates
from recipe_app.graphs.closure import Relation, relation
from recipe_app.graphs.model import Graph
from recipe_app.graphs.perfect import draw_perfect

STATE_BUDGET = 300_000
"""Down-sets in all tables of one graph together: about 1.5 s and 100 MB in the worst case."""
PERFECT_EFFORT = 2_500_000
LARGEST_PERFECT = 80
"""Steps up to which one perfect draw stays within seconds (its cost grows with the cube)."""

Order = tuple[int, ...]


class Part(Protocol):
    """One part of a split order; `unrank` returns the order (indices of items) of a rank in [0, total)."""

    total: int
    size: int
    down_sets: int

    def unrank(self, rank: int) -> list[int]: ...


class Single:
    """One step."""

    def __init__(self, item: int) -> None:
        self.item, self.total, self.size, self.down_sets = item, 1, 1, 2

    def unrank(self, rank: int) -> list[int]:
        """Return the one order."""
        return [self.item]


class Series:
    """Parts that stand wholly one after the other."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = parts
        self.total = prod(part.total for part in parts)
        self.size = sum(part.size for part in parts)
        self.down_sets = sum(part.down_sets for part in parts) - len(parts) + 1

    def unrank(self, rank: int) -> list[int]:
        """Return each part's order, one after the other."""
        order: list[int] = []
        for part in self.parts:
            rank, own = divmod(rank, part.total)
            order += part.unrank(own)
        return order


class Parallel:
    """Parts with nothing between them: any shuffle that keeps each part's order."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = parts
        self.total, self.size, self.down_sets = 1, 0, 1
        for part in parts:
            self.size += part.size
            self.total *= part.total * comb(self.size, part.size)
            self.down_sets *= part.down_sets

    def unrank(self, rank: int) -> list[int]:
        """Shuffle the parts' orders into each other, one part after the other."""
        order: list[int] = []
        for part in self.parts:
            rank, own = divmod(rank, part.total)
            rank, shuffle = divmod(rank, comb(len(order) + part.size, part.size))
            order = _shuffle(order, part.unrank(own), shuffle)
        return order


def _shuffle(first: list[int], second: list[int], rank: int) -> list[int]:
    """Merge two lists in the `rank`-th of the comb(a + b, b) ways, each list keeping its order."""
    merged: list[int] = []
    i = j = 0
    while i < len(first) or j < len(second):
        remaining_second = len(second) - j
        from_first = comb(len(first) - i - 1 + remaining_second, remaining_second) if i < len(first) else 0
        if rank < from_first:
            merged.append(first[i])
            i += 1
        else:
            rank -= from_first
            merged.append(second[j])
            j += 1
    return merged


class Table:
    """A part that cannot be split: the number of completions of each of its down-sets."""

    def __init__(self, order: Relation, members: int, budget: int) -> None:
        """Fill the table. Raises TooManyStates when it would hold more than `budget` down-sets."""
        self.before = {bit: order.before[bit] & members for bit in bits(members)}
        self.completions = _count_completions(self.before, order.after, members, budget)
        self.total = self.completions[0]
        self.size = members.bit_count()
        self.down_sets = len(self.completions)

    def unrank(self, rank: int) -> list[int]:
        """Walk from the empty set; each next step takes as many ranks as it has completions."""
        done, order = 0, []
        for _ in range(self.size):
            for bit, needed in self.before.items():
                if done >> bit & 1 or needed & ~done:
                    continue
                share = self.completions[done | 1 << bit]
                if rank < share:
                    done |= 1 << bit
                    order.append(bit)
                    break
                rank -= share
        return order


def _count_completions(
    before: dict[int, int], after: Sequence[int], members: int, budget: int
) -> dict[int, int]:
    levels: list[dict[int, int]] = [{0: sum(1 << bit for bit, needed in before.items() if not needed)}]
    states = 1
    for _ in before:  # level n: the down-sets of n steps, each with the mask of steps that may come next
        following: dict[int, int] = {}
        for done, ready in levels[-1].items():
            for bit in bits(ready):
                grown = done | 1 << bit
                if grown in following:
                    continue
                freed = (b for b in bits(after[bit] & members) if not before[b] & ~grown)
                following[grown] = (ready & ~(1 << bit)) | sum(1 << b for b in freed)
        states += len(following)
        if states > budget:
            raise TooManyStates(budget)
        levels.append(following)
    completions = {members: 1}
    for level in reversed(levels[:-1]):
        for done, ready in level.items():
            completions[done] = sum(completions[done | 1 << bit] for bit in bits(ready))
    return completions


def bits(mask: int) -> Iterator[int]:
    """Yield the positions of the set bits, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _components(members: int, neighbours: Sequence[int]) -> list[int]:
    found = []
    while members:
        component = frontier = members & -members
        while frontier:
            reached = 0
            for bit in bits(frontier):
                reached |= neighbours[bit]
            frontier = reached & members & ~component
            component |= frontier
        found.append(component)
        members &= ~component
    return found


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
            return Single(members.bit_length() - 1)
        parallel = _components(members, self.comparable)
        if len(parallel) != 1:  # also the empty order: a parallel of nothing has one order
            return Parallel([self.split(part) for part in parallel])
        series = _components(members, self.incomparable)
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


def uncounted_limit(size: int) -> int:
    """Return how many perfect draws over `size` steps take about half a minute together, at least one."""
    return max(PERFECT_EFFORT // max(size, 1) ** 3, 1)


def _draw_uncounted(
    graph: Graph, order: Relation, count: int, rng: random.Random, budget: int, why: str
) -> Drawn:
    size = len(order.items)
    if size > LARGEST_PERFECT:
        raise TooManyOrders(graph.name, f"{why}, and {size} steps are too many for the perfect sampler")
    at_least = budget // (size + 1)  # every down-set begins an order, which begins with size + 1 of them
    allowed = max(min(at_least // 2, uncounted_limit(size)), 1)
    if count > allowed:
        raise TooManyOrders(graph.name, f"{why}, so at most {allowed} orders are drawn at once")
    drawn: dict[Order, None] = {}
    while len(drawn) < count:
        drawn[draw_perfect(order, rng)] = None
    note = f"{why}: drawn by Huber's perfect sampler, the total is not known (at least {at_least})"
    return Drawn(None, "huber", tuple(drawn), note)

"""Draw one valid order exactly uniformly without counting: Huber's bounding chain, run from the past.

M. Huber, "Fast perfect sampling from linear extensions", Discrete Mathematics 306 (2006) 420-428; expected
O(n^3 log n) moves. The chain swaps two neighbours when a coin says so and no edge forbids it; its stationary
law is uniform. A second sequence *bounds* every state of the chain at once: an item at place p of the bound
stands at p or earlier in all states. When every item is in the bound, all states are one. A run that does not
get there is played again, with the same choices, from a state drawn by a run twice as long: that makes the
answer exact.
"""

from __future__ import annotations

import random

from recipe_app.graphs.order.closure import Relation

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

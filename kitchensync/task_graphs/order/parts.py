"""Parts of a split partial order: their numbers of orders, and the order of a rank.

Single steps, parts that follow each other (series), unconnected parts (parallel), and tables over the down-sets of
parts that cannot be split.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import comb, prod
from typing import Protocol

from kitchensync.task_graphs.errors import TooManyStates
from kitchensync.task_graphs.order.closure import Relation


class Part(Protocol):
    """One part of a split order; `unrank` returns the order (indices of items) of a rank in [0, total)."""

    total: int
    size: int
    down_sets: int

    def unrank(self, rank: int) -> list[int]: ...


class SingleStep:
    """One step."""

    def __init__(self, item: int) -> None:
        self.item, self.total, self.size, self.down_sets = item, 1, 1, 2

    def unrank(self, rank: int) -> list[int]:
        """Return the one order."""
        return [self.item]


class Series:
    """Parts that completely follow each other."""

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
    """Unconnected parts: any shuffle that keeps each part's order is valid."""

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
        """Fill the table. Raises TooManyStates if it has more than `budget` down-sets."""
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


def components(members: int, neighbours: Sequence[int]) -> list[int]:
    """Return the connected parts of a set of items, as masks."""
    parts = []
    while members:
        component = frontier = members & -members
        while frontier:
            reached = 0
            for bit in bits(frontier):
                reached |= neighbours[bit]
            frontier = reached & members & ~component
            component |= frontier
        parts.append(component)
        members &= ~component
    return parts

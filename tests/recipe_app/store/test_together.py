"""What many ask for at one moment is written together, and nobody pays for another's fault."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from kitchensync.recipe_app.store.app_records import GroupedWrites


class Store:
    """Writes numbers in calls that can be held up; an odd one cannot be written."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []
        self.go = threading.Event()
        self.entered = threading.Event()

    def write(self, items: Sequence[int]) -> list[str]:
        self.entered.set()
        assert self.go.wait(10)
        self.calls.append(list(items))
        if any(item % 2 for item in items):
            raise ValueError(items)
        return [f"{item} written" for item in items]


def ask_all(store: Store, wishes: list[list[int]]) -> list[list[str] | str]:
    """The first wish is being written while all the others arrive."""
    together = GroupedWrites(store.write)
    answers: list[list[str] | str] = ["" for _ in wishes]

    def ask(place: int) -> None:
        try:
            answers[place] = together.put(wishes[place])
        except ValueError as error:
            answers[place] = f"refused {error.args[0]}"

    threads = [threading.Thread(target=ask, args=(place,)) for place in range(len(wishes))]
    threads[0].start()
    assert store.entered.wait(10)
    for thread in threads[1:]:
        thread.start()
    while len(together._waiting) < len(wishes) - 1:
        pass
    store.go.set()
    for thread in threads:
        thread.join()
    return answers


def test_who_waits_is_written_by_whoever_has_the_turn() -> None:
    store = Store()
    wishes = [[2], [4, 6], [8], [], [10]]
    assert ask_all(store, wishes) == [[f"{item} written" for item in wish] for wish in wishes]
    assert [len(call) for call in store.calls] == [1, 4]
    assert sorted(store.calls[1]) == [4, 6, 8, 10]


def test_one_fault_is_one_refusal() -> None:
    store = Store()
    answers = ask_all(store, [[2], [4], [5], [6]])
    assert answers == [["2 written"], ["4 written"], "refused [5]", ["6 written"]]


def test_after_a_fault_the_next_is_written() -> None:
    store = Store()
    store.go.set()
    together = GroupedWrites(store.write)
    with pytest.raises(ValueError, match=r"\[3\]"):
        together.put([3])
    assert together.put([2]) == ["2 written"]

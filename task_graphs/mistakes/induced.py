"""Induced errors: give some steps of an order a hint each, balanced over the categories."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence

from task_graphs.errors import NoSuchScript
from task_graphs.mistakes.hint_rules import TEXT_RULES
from task_graphs.mistakes.hints import Hint, step_hints, texts_after
from task_graphs.model import Graph

INDUCIBLE = tuple(category for category, _ in TEXT_RULES)


def induce(
    graph: Graph,
    order: Sequence[int],
    *,
    count: int,
    seed: int,
    categories: Collection[str] = INDUCIBLE,
    protected: Collection[int] = (),
) -> dict[int, Hint]:
    """Choose `count` different steps and an error for each, as many of each category as the texts allow.

    Raises NoSuchScript when the texts of the unprotected steps do not give so many.
    """
    rng = random.Random(f"induce {seed}")
    steps = [node for node in order if node not in protected]
    rng.shuffle(steps)
    by_step = {node: step_hints(graph.by_node[node], texts_after(graph, node)) for node in steps}
    rounds = [category for category in INDUCIBLE if category in categories]
    rng.shuffle(rounds)
    chosen: dict[int, Hint] = {}
    while len(chosen) < count and rounds:
        for category in list(rounds):
            node, hint = _one_of(category, by_step, chosen, rng)
            if hint is None:
                rounds.remove(category)
            elif len(chosen) < count:
                chosen[node] = hint
    if len(chosen) < count:
        raise NoSuchScript(
            graph.name, f"its steps give {len(chosen)} induced errors, {count} were asked; ask for fewer"
        )
    return {node: chosen[node] for node in order if node in chosen}


def _one_of(
    category: str, by_step: dict[int, list[Hint]], taken: Collection[int], rng: random.Random
) -> tuple[int, Hint | None]:
    for node, hints in by_step.items():
        fitting = [hint for hint in hints if hint.category == category]
        if fitting and node not in taken:
            return node, rng.choice(fitting)
    return 0, None

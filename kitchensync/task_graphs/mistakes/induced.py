"""Induced errors: give some steps a hint each, balanced over the categories."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence

from kitchensync.task_graphs.errors import NoSuchScript
from kitchensync.task_graphs.mistakes.hint_rules import TEXT_RULES
from kitchensync.task_graphs.mistakes.hints import Hint, step_hints, texts_after
from kitchensync.task_graphs.model import Graph

INDUCIBLE = tuple(category for category, _ in TEXT_RULES)


def induce(
    graph: Graph, order: Sequence[int], *, count: int, seed: int, protected: Collection[int] = ()
) -> dict[int, Hint]:
    """Choose `count` different steps and an error for each, as many of each category as the texts allow.

    Raises NoSuchScript when the texts of the unprotected steps do not give so many.
    """
    rng = random.Random(f"induce {seed}")
    steps = [node for node in order if node not in protected]
    rng.shuffle(steps)
    by_step = {node: step_hints(graph.by_node[node], texts_after(graph, node)) for node in steps}
    categories = list(INDUCIBLE)
    rng.shuffle(categories)
    chosen = in_turn(by_step, categories, count=count, rng=rng)
    if len(chosen) < count:
        raise NoSuchScript(
            graph.name, f"its steps give {len(chosen)} induced errors, {count} were asked; ask for fewer"
        )
    return {node: chosen[node] for node in order if node in chosen}


def in_turn(
    by_step: Mapping[int, Sequence[Hint]], categories: Sequence[str], *, count: int, rng: random.Random
) -> dict[int, Hint]:
    """Give up to `count` steps a hint each: the categories take turns, each takes the first step that has one."""
    chosen: dict[int, Hint] = {}
    for category in [*categories] * count:
        fitting = {
            node: [hint for hint in hints if hint.category == category]
            for node, hints in by_step.items()
            if node not in chosen
        }
        node = next((node for node, hints in fitting.items() if hints), None)
        if node is not None and len(chosen) < count:
            chosen[node] = rng.choice(fitting[node])
    return chosen

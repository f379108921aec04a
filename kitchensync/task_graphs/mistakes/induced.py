"""Induced errors: one hint for each of some steps, balanced over the categories."""

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
    """Choose `count` different steps and an error for each, balanced over the categories as far as possible.

    Raises NoSuchScript if the unprotected steps allow fewer errors.
    """
    rng = random.Random(f"induce {seed}")
    steps = [node for node in order if node not in protected]
    rng.shuffle(steps)
    by_step = {node: step_hints(graph.by_node[node], texts_after(graph, node)) for node in steps}
    categories = list(INDUCIBLE)
    rng.shuffle(categories)
    chosen = in_turn(by_step, categories, count=count, rng=rng)
    if len(chosen) < count:
        why = f"its steps allow {len(chosen)} induced errors, {count} were requested; request fewer"
        raise NoSuchScript(graph.name, why)
    return {node: chosen[node] for node in order if node in chosen}


def in_turn(
    by_step: Mapping[int, Sequence[Hint]], categories: Sequence[str], *, count: int, rng: random.Random
) -> dict[int, Hint]:
    """Choose a hint for up to `count` steps: the categories take turns, each takes the first step with a hint."""
    chosen: dict[int, Hint] = {}
    for category in [*categories] * count:
        matching = {
            node: [hint for hint in hints if hint.category == category]
            for node, hints in by_step.items()
            if node not in chosen
        }
        node = next((node for node, hints in matching.items() if hints), None)
        if node is not None and len(chosen) < count:
            chosen[node] = rng.choice(matching[node])
    return chosen

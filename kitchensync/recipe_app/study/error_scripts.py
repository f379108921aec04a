"""Error scripts of sessions, a wrong order or errors at steps: drawn from a seed, identified by a hash."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from kitchensync.operations.operation_kinds import MAX_LINE_LENGTH
from kitchensync.recipe_app.study.wanted import DISORDERED, PLANNED
from kitchensync.task_graphs.errors import NoSuchScript, TooManyOrders
from kitchensync.task_graphs.mistakes.hints import CATEGORY_NAMES, Hint, graph_hints, step_hints, texts_after
from kitchensync.task_graphs.mistakes.induced import INDUCIBLE, in_turn
from kitchensync.task_graphs.mistakes.scripts import Script, ScriptRequest, draw_script
from kitchensync.task_graphs.model import Graph
from kitchensync.task_graphs.text.safety import must_stay

PROPOSED = 4
"""Number of errors proposed for a session with planned errors."""
SEEDS = 2**32  # browsers hold and increment a seed exactly
TRIES = 64
"""Number of draws before a script is used again."""


def protected(graph: Graph) -> frozenset[int]:
    """Return the steps for people's safety, which no script leaves out, moves or changes."""
    return frozenset(step.node for step in graph.steps if must_stay(step.text))


@lru_cache(maxsize=64)
def hints_of(graph: Graph) -> Mapping[int, Sequence[Hint]]:
    """Return the hints of each step, from its text and from its place in the graph."""
    # A hint repeats its step's text, which may be too long for a line of the log.
    return {
        step.node: [
            hint
            for hint in (*step_hints(step, texts_after(graph, step.node)), *graph_hints(graph, step.node))
            if all(len(value) <= MAX_LINE_LENGTH for value in asdict(hint).values() if isinstance(value, str))
        ]
        for step in graph.steps
    }


def proposed(graph: Graph, *, seed: int, category: str = "") -> list[Hint]:
    """Draw errors at different steps, one of `category` if possible, the others of different categories.

    They are in the order of the steps; there may be fewer than `PROPOSED`.
    """
    safe = protected(graph)
    rng = random.Random(f"proposed {seed}")
    others = [name for name in INDUCIBLE if name != category]
    rng.shuffle(others)
    steps = [node for node in hints_of(graph) if node not in safe]
    rng.shuffle(steps)
    by_step = {node: [hint for hint in hints_of(graph)[node] if hint.before not in safe] for node in steps}
    chosen = in_turn(by_step, [category, *others], count=PROPOSED, rng=rng)
    return [chosen[step.node] for step in graph.steps if step.node in chosen]


def wrong_order(graph: Graph, *, seed: int, missing: int = 1, flips: int = 2) -> Script:
    """Draw an order with errors that keeps protected steps in place, with fewer errors if necessary.

    Raises NoSuchScript with the reason, TooManyOrders.
    """
    safe = protected(graph)
    for left_out, turned in ((missing, flips), (missing, 1), (0, 1)):
        with suppress(NoSuchScript):
            return draw_script(
                graph, ScriptRequest(missing=left_out, flips=turned, protected=safe), seed=seed
            )
    return draw_script(graph, ScriptRequest(missing=1, protected=safe), seed=seed)


def script_of(graph: Graph, strategy: str, *, seed: int, category: str = "") -> str:
    """Return the hash of a session's script; empty without one."""
    if strategy == PLANNED:
        hints = proposed(graph, seed=seed, category=category)
        return hash_of_errors((hint.node, CATEGORY_NAMES.index(hint.category)) for hint in hints)
    if strategy == DISORDERED:
        with suppress(NoSuchScript, TooManyOrders):
            return hash_of_order(wrong_order(graph, seed=seed).order)
    return ""


def hash_of_order(order: Sequence[int]) -> str:
    """Return the hash of a wrong order."""
    return _hash(list(order))


def hash_of_errors(errors: Iterable[tuple[int, int]]) -> str:
    """Return the hash of errors by their steps and category numbers, independent of their order."""
    return _hash(sorted(set(errors)))


def _hash(values: list[Any]) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:24] if values else ""


def draw_unused(
    graph: Graph, strategy: str, category: str, *, used: Mapping[str, int], rng: random.Random
) -> tuple[int, str]:
    """Draw a seed whose script is unused, or else least used; return it with the script's hash."""
    seeds: dict[str, int] = {}
    for _ in range(TRIES):
        seed = rng.randrange(SEEDS)
        script = script_of(graph, strategy, seed=seed, category=category)
        seeds.setdefault(script, seed)
        if not script or not used.get(script):
            break
    least = min(seeds, key=lambda script: (not script, used.get(script, 0)))
    return seeds[least], least

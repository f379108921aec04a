"""The error script of a session, a wrong order or errors at steps: drawn from a seed, known by a hash."""

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
"""Errors that are proposed together for a session with planned errors."""
SEEDS = 2**32
TRIES = 64
"""Scripts drawn for a session before one is taken that was used already."""


def protected(graph: Graph) -> frozenset[int]:
    """Return the steps that keep people safe: no script leaves them out, moves or changes them."""
    return frozenset(step.node for step in graph.steps if must_stay(step.text))


@lru_cache(maxsize=64)
def hints_of(graph: Graph) -> Mapping[int, Sequence[Hint]]:
    """Return the hints of each step, in its own words and by its place."""
    # The log has no room for a hint with a very long step's own text.
    return {
        step.node: [
            hint
            for hint in (*step_hints(step, texts_after(graph, step.node)), *graph_hints(graph, step.node))
            if all(len(value) <= MAX_LINE_LENGTH for value in asdict(hint).values() if isinstance(value, str))
        ]
        for step in graph.steps
    }


def proposed(graph: Graph, *, seed: int, category: str = "") -> list[Hint]:
    """Draw a few errors at different steps, one of `category` first, the others of different categories.

    They come in the order of the steps; fewer where the texts do not give so many.
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
    """Draw an order with stated errors that leaves protected steps in place; with fewer errors where it must.

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
    """Return the hash of the script that a session is given; empty where it is given none."""
    if strategy == PLANNED:
        hints = proposed(graph, seed=seed, category=category)
        return hash_of_errors((hint.node, CATEGORY_NAMES.index(hint.category)) for hint in hints)
    if strategy == DISORDERED:
        with suppress(NoSuchScript, TooManyOrders):
            return hash_of_order(wrong_order(graph, seed=seed).order)
    return ""


def hash_of_order(order: Sequence[int]) -> str:
    """Identify a wrong order."""
    return _hash(list(order))


def hash_of_errors(errors: Iterable[tuple[int, int]]) -> str:
    """Identify errors by their steps and the numbers of their categories, whatever their sequence."""
    return _hash(sorted(set(errors)))


def _hash(said: list[Any]) -> str:
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:24] if said else ""


def draw_apart(
    graph: Graph, strategy: str, category: str, *, used: Mapping[str, int], rng: random.Random
) -> tuple[int, str]:
    """Draw a seed and the hash of its script, one that is not used yet; where none is found, one used least."""
    found: dict[str, int] = {}
    for _ in range(TRIES):
        seed = rng.randrange(SEEDS)
        script = script_of(graph, strategy, seed=seed, category=category)
        found.setdefault(script, seed)
        if not script or not used.get(script):
            break
    least = min(found, key=lambda script: (not script, used.get(script, 0)))
    return found[least], least

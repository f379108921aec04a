"""Stage 1: freeze what was chosen, so that what was shown can be said years later without the recipe's file.

Strategy (what the session is for), plan (which errors shall be made) and outcome (what happened) are three things:
the strategy is here and never changes; a disordered script puts its stated errors into the plan, with a certificate.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from recipe_app.errors import NoSuchScript, NotNow
from recipe_app.graphs.mistakes.hints import Hint, graph_hints, step_hints, texts_after
from recipe_app.graphs.mistakes.induced import induce
from recipe_app.graphs.mistakes.scripts import GENERATOR, Script, Wish, draw_script
from recipe_app.graphs.mistakes.wording import cautions, say, watched
from recipe_app.graphs.model import Graph, Step
from recipe_app.graphs.order.orders import draw_orders, is_valid_order
from recipe_app.graphs.text.safety import must_stay
from recipe_app.graphs.text.spans import timers
from recipe_app.operations.kinds import MOST_LETTERS
from recipe_app.store.app_records import new_id
from recipe_app.store.shelf import Recipe

ORDER, MISSING = 2, 6
SUGGESTED = 4
"""Errors that are proposed together for an induced script."""


def frozen(
    recipe: Recipe,
    *,
    strategy: str,
    display: str,
    seed: int,
    language: str = "",
    missing: int = 1,
    flips: int = 2,
    order: Sequence[int] = (),
) -> dict[str, Any]:
    """Return everything that is shown of a recipe: an order, or for `disordered` a verified script.

    `order` is one that was planned; where the recipe has changed since and it is none any more, another is drawn.

    `label` is a step as the recipe says it, `text` as it is shown, in `language` where one is chosen. Raises
    NotNow where no script can be drawn, TooManyOrders, NotFound for a language that it has not.
    """
    graph = recipe.graph
    shown = (graph.in_language(language) if language else graph).numbered
    body: dict[str, Any] = {
        "name": recipe.name,
        "title": recipe.titles.get(language, recipe.title),
        "language": shown.language,
        "source": graph.name,
        "graph_hash": graph.content_hash,
        "strategy": strategy,
        "display": display,
        "seed": seed,
        "total": recipe.total,
        "steps": {
            str(step.node): {"label": step.label, "text": shown.by_node[step.node].text}
            for step in graph.steps
        },
        "edges": [list(edge) for edge in graph.edges],
        "planned": [],
        "script": None,
    }
    if strategy == "disordered":
        script = _script(graph, seed, missing, flips)
        return body | {
            "order": list(script.order),
            "sampler": script.sampler,
            "planned": _planned(graph, script, seed),
            "script": _certificate(graph, script),
        }
    if order and is_valid_order(graph, order):
        return body | {"order": list(order), "sampler": "plan"}
    drawn = draw_orders(graph, count=1, seed=seed)
    return body | {"order": list(drawn.orders[0]), "sampler": drawn.sampler}


def _script(graph: Graph, seed: int, missing: int, flips: int) -> Script:
    """Draw a script that leaves the steps in place that keep people safe; with fewer errors where it must.

    Raises NotNow where there is none, with the reason.
    """
    safe = frozenset(step.node for step in graph.steps if must_stay(step.text))
    wishes = [(missing, flips), (missing, 1), (0, 1), (1, 0)]
    for number, (left_out, turned) in enumerate(wishes):
        try:
            return draw_script(graph, Wish(missing=left_out, flips=turned, protected=safe), seed=seed)
        except NoSuchScript as error:
            if number == len(wishes) - 1:
                raise NotNow(
                    "no wrong order of {title} can be drawn ({why}); choose another purpose",
                    title=graph.recipe.title or graph.name,
                    why=str(error),
                ) from error
    raise AssertionError("one of the wishes was drawn or refused")


def _certificate(graph: Graph, script: Script) -> dict[str, Any]:
    return {
        "missing": list(script.missing),
        "broken": [list(edge) for edge in script.broken],
        "unmet": [list(edge) for edge in script.unmet],
        "distance": script.distance,
        "reparable": script.reparable,
        "generator": GENERATOR,
        "seed": script.seed,
        "graph_hash": script.graph_hash,
        "wording": say(graph, script),
        "cautions": cautions(graph, script),
        "watched": watched(graph, script),
        "verified": True,
    }


def _planned(graph: Graph, script: Script, seed: int) -> list[dict[str, Any]]:
    """The errors that a script states, one record each; the same ids at every drawing of the same seed."""
    rng = random.Random(f"planned {graph.content_hash} {seed}")
    changes = [(node, MISSING) for node in script.missing] + [(after, ORDER) for _, after in script.broken]
    return [
        {
            "error_id": new_id(rng.getrandbits(60)),
            "fields": {"node": node, "categories": [category], "description": sentence},
        }
        for (node, category), sentence in zip(changes, say(graph, script), strict=True)
    ]


def help_for(graph: Graph, *, seed: int) -> dict[str, Any]:
    """Return what the tablet needs beside the frozen recipe: hints and timers by step, a balanced proposal.

    Hints are in the recipe's own language, whichever is shown: what is planned with one says so.
    """
    safe = {step.node for step in graph.steps if must_stay(step.text)}
    return {
        "language": graph.language,
        "hints": {str(step.node): _hints(graph, step) for step in graph.steps},
        "timers": {str(step.node): [asdict(timer) for timer in timers(step.text)] for step in graph.steps},
        "protected": sorted(safe),
        "suggested": _suggested(graph, seed, safe),
    }


def _hints(graph: Graph, step: Step) -> list[dict[str, Any]]:
    rules = (*step_hints(step, texts_after(graph, step.node)), *graph_hints(graph, step.node))
    return [hint for hint in map(_hint, rules) if _fits(hint)]


def _fits(hint: dict[str, Any]) -> bool:
    """Tell whether the log has room for an error made of it: a very long step's own text is in its hints."""
    return all(len(value) <= MOST_LETTERS for value in hint.values() if isinstance(value, str))


def _hint(hint: Hint) -> dict[str, Any]:
    return {key: value for key, value in asdict(hint).items() if key not in ("node", "origin")}


def _suggested(graph: Graph, seed: int, safe: set[int]) -> list[dict[str, Any]]:
    """A few errors of different categories; fewer where the texts do not give so many."""
    order = [step.node for step in graph.steps]
    for count in range(min(SUGGESTED, len(order)), 0, -1):
        try:
            drawn = induce(graph, order, count=count, seed=seed, protected=safe)
        except NoSuchScript:
            continue
        hints = {node: _hint(hint) for node, hint in drawn.items()}
        return [{"node": node, **hint} for node, hint in hints.items() if _fits(hint)]
    return []

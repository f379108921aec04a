"""Freeze the chosen recipe, so that the shown steps can be reconstructed later without the recipe's file.

Strategy (the purpose of the session), plan (intended errors) and outcome are separate. The strategy is fixed here; a
disordered script puts its errors into the plan, with a certificate.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from kitchensync.operations.errors import NotNow
from kitchensync.recipe_app.store.app_records import new_id
from kitchensync.recipe_app.store.shelf import Recipe
from kitchensync.recipe_app.study.error_scripts import SEEDS, hints_of, proposed, protected, wrong_order
from kitchensync.recipe_app.study.wanted import DISORDERED
from kitchensync.task_graphs.errors import NoSuchScript
from kitchensync.task_graphs.mistakes.hints import Hint
from kitchensync.task_graphs.mistakes.scripts import GENERATOR, cautions, safety_steps, script_sentences
from kitchensync.task_graphs.model import Graph
from kitchensync.task_graphs.order.orders import draw_orders, is_valid_order
from kitchensync.task_graphs.text.spans import timers

ORDER, MISSING = 2, 6  # numbers in `CATEGORIES`


def frozen(
    recipe: Recipe,
    *,
    strategy: str,
    display: str,
    seed: int | None,
    language: str = "",
    missing: int = 1,
    flips: int = 2,
    order: Sequence[int] = (),
) -> dict[str, Any]:
    """Return everything that is shown of a recipe: an order, or for `disordered` a verified script.

    Without a `seed` one is drawn. A planned `order` is used if it is still valid for the recipe, else one is drawn.
    `label` is a step in the recipe's own words, `text` as shown, in the chosen `language` if any. Raises NotNow if no
    script can be drawn, TooManyOrders, NotFound for a language that the recipe does not have.
    """
    seed = secrets.randbelow(SEEDS) if seed is None else seed
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
    if strategy == DISORDERED:
        return body | _disordered(graph, seed, missing, flips)
    if order and is_valid_order(graph, order):
        return body | {"order": list(order), "sampler": "plan"}
    drawn = draw_orders(graph, count=1, seed=seed)
    return body | {"order": list(drawn.orders[0]), "sampler": drawn.sampler}


def _disordered(graph: Graph, seed: int, missing: int, flips: int) -> dict[str, Any]:
    """Draw a script and return its order, errors and certificate. Raises NotNow if there is none."""
    try:
        script = wrong_order(graph, seed=seed, missing=missing, flips=flips)
    except NoSuchScript as error:
        raise NotNow(
            "no wrong order of {title} can be drawn ({why}); choose another purpose",
            title=graph.recipe.title or graph.name,
            why=str(error),
        ) from error
    # The ids of the errors are reproducible too: drawing again with the same seed gives the same ids.
    rng, wording = random.Random(f"planned {graph.content_hash} {seed}"), script_sentences(graph, script)
    changes = [(node, MISSING) for node in script.missing] + [(after, ORDER) for _, after in script.broken]
    planned = [
        {
            "error_id": new_id(rng.getrandbits(60)),
            "fields": {"node": node, "categories": [category], "description": sentence},
        }
        for (node, category), sentence in zip(changes, wording, strict=True)
    ]
    certificate = {
        "missing": list(script.missing),
        "broken": [list(edge) for edge in script.broken],
        "unmet": [list(edge) for edge in script.unmet],
        "distance": script.distance,
        "reparable": script.reparable,
        "generator": GENERATOR,
        "seed": script.seed,
        "graph_hash": script.graph_hash,
        "wording": wording,
        "cautions": cautions(graph, script),
        "watched": safety_steps(graph, script),
        "verified": True,
    }
    order, sampler = list(script.order), script.sampler
    return {"order": order, "sampler": sampler, "planned": planned, "script": certificate}


def help_for(graph: Graph, *, seed: int, category: str = "") -> dict[str, Any]:
    """Return what the tablet needs besides the frozen recipe: hints and timers by step, proposed errors.

    Hints are in the recipe's own language, whichever is shown.
    """
    return {
        "language": graph.language,
        "hints": {str(node): [_hint(hint) for hint in hints] for node, hints in hints_of(graph).items()},
        "timers": {str(step.node): [asdict(timer) for timer in timers(step.text)] for step in graph.steps},
        "protected": sorted(protected(graph)),
        "suggested": [
            {"node": hint.node, **_hint(hint)} for hint in proposed(graph, seed=seed, category=category)
        ],
    }


def _hint(hint: Hint) -> dict[str, Any]:
    return {key: value for key, value in asdict(hint).items() if key not in ("node", "origin")}

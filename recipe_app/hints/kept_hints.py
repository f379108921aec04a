"""What a model proposed, as the log keeps it: asked, reviewed by a person, then offered on tablets and counted.

Only what a person took reaches a tablet, for a step whose text is still the one that was asked about, and after it
passed the gate once more: rules may have become stricter since.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import select

from recipe_app.errors import NotFound
from recipe_app.exchange.stated_facts import latest
from recipe_app.graphs.mistakes.hints import Hint, texts_after, why_refused
from recipe_app.graphs.model import Graph, Step
from recipe_app.hints.hint_server import Answered
from recipe_app.operations.reduce import standing
from recipe_app.store import oplog, tables
from recipe_app.store.app_records import AppRecords

PROPOSED, REVIEWED, SWITCH = "model_hints", "hint_review", "hint_switch"
"""Operations: what was answered for one step of a recipe, what a person said of one hint, may models be asked."""
ALL_RECIPES = "recipes"
USES = {"shown": "shown", "applied": "used", "edited": "used", "dismissed": "dismissed"}


@dataclass(frozen=True)
class KeptHint:
    """A proposed hint: where it belongs, who proposed it, what a person said of it."""

    id: str
    node: int
    step: str
    model: str
    hint: Hint
    is_taken: bool | None = None
    "None while nobody has looked."


def is_on(records: AppRecords) -> bool:
    """Tell whether an admin lets recipe texts go to a model."""
    return bool(latest(records, SWITCH).get(ALL_RECIPES, {}).get("on", False))


def switch(records: AppRecords, *, on: bool, actor: str) -> None:
    """Let recipe texts go to a model, or not any more."""
    records.note(SWITCH, ALL_RECIPES, {"on": on}, actor=actor)


def keep(records: AppRecords, recipe: str, step: Step, answered: Answered, *, model: str, actor: str) -> None:
    """Keep what a model answered for one step: what passed the gate, and how many did not for which reason."""
    hints = [{"id": _id(recipe, step, hint), **asdict(hint)} for hint in answered.hints]
    body = {
        "node": step.node,
        "step": step.text,
        "model": model,
        "hints": hints,
        "refused": answered.refused,
    }
    records.note(PROPOSED, recipe, body, actor=actor)


def _id(recipe: str, step: Step, hint: Hint) -> str:
    said = [recipe, step.node, step.text, hint.category, hint.text, hint.wording]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]


def hints_of(records: AppRecords, recipe: str) -> list[KeptHint]:
    """Return what was proposed for a recipe, each once, with what was said of it last."""
    found: dict[str, KeptHint] = {}
    said: dict[str, bool] = {}
    for op in _ops(records, recipe, (PROPOSED, REVIEWED)):
        body = op["body"]
        if op["kind"] == REVIEWED:
            said[body["hint"]] = body["take"]
            continue
        for one in body["hints"]:
            name, hint = one["id"], Hint(**{key: value for key, value in one.items() if key != "id"})
            found.setdefault(name, KeptHint(name, body["node"], body["step"], body["model"], hint))
    return [
        KeptHint(one.id, one.node, one.step, one.model, one.hint, said.get(one.id)) for one in found.values()
    ]


def refused_of(records: AppRecords, recipe: str) -> dict[str, int]:
    """Return how many proposals the gate refused, by reason."""
    refused: Counter[str] = Counter()
    for op in _ops(records, recipe, (PROPOSED,)):
        refused.update(op["body"]["refused"])
    return dict(refused.most_common())


def review(records: AppRecords, recipe: str, name: str, *, take: bool, actor: str) -> None:
    """Say of a proposed hint whether tablets may offer it. Raises NotFound."""
    if name not in {one.id for one in hints_of(records, recipe)}:
        raise NotFound("no hint {name!r}; load the page again", name=name)
    records.note(REVIEWED, recipe, {"hint": name, "take": take}, actor=actor)


def taken(records: AppRecords, recipe: str, graph: Graph) -> dict[int, list[KeptHint]]:
    """Return by step what a person took and this version of the recipe can still show."""
    found: dict[int, list[KeptHint]] = {}
    for one in hints_of(records, recipe):
        step = graph.by_node.get(one.node)
        if not one.is_taken or step is None or step.text != one.step:
            continue
        if why_refused(step, one.hint, texts_after(graph, step.node)) is None:
            found.setdefault(one.node, []).append(one)
    return found


def uses_of(records: AppRecords, recipe: str) -> dict[str, Counter[str]]:
    """Count by hint how often it was shown, used and dismissed, without what was taken back."""
    names = {one.id for one in hints_of(records, recipe)}
    op = tables.op
    asked = select(op.c.subject).where(op.c.kind == "hint", op.c.body.contains('"source"'), oplog.IS_KEPT)
    with records.database.reading() as connection:
        recordings = sorted({row.subject for row in connection.execute(asked)})
    counted: dict[str, Counter[str]] = {name: Counter() for name in names}
    for recording in recordings:
        for one in standing(records.ops(recording)):
            if one["kind"] == "hint" and one["body"].get("source") in names:
                counted[one["body"]["source"]][USES[one["body"]["use"]]] += 1
    return counted


def _ops(records: AppRecords, recipe: str, kinds: tuple[str, ...]) -> list[dict[str, Any]]:
    op = tables.op
    asked = select(op).where(op.c.subject == recipe, op.c.kind.in_(kinds), oplog.IS_KEPT).order_by(op.c.n)
    with records.database.reading() as connection:
        return [oplog.as_op(row) for row in connection.execute(asked)]

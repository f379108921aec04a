"""Training items that a person reads or watches before the first session of a recipe or with a skill."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from sqlalchemy import select

from kitchensync.recipe_app.exchange.stated_facts import RECIPE, latest
from kitchensync.recipe_app.store import oplog, tables
from kitchensync.recipe_app.store.app_records import AppRecords

KIND = "training"
"""The operation that sets the items of a recipe or a skill; the latest counts."""
OF_RECIPE, OF_SKILL = "recipe", "skill"


def due(records: AppRecords, recipe: str, person: str) -> list[dict[str, Any]]:
    """Return the training of a recipe and its skills that a person has not seen: about, version, items."""
    stated = latest(records, KIND)
    skills = latest(records, RECIPE).get(recipe, {}).get("skills", [])
    about = [(OF_RECIPE, recipe), *((OF_SKILL, skill) for skill in skills)]
    op = tables.op
    query = select(op.c.body).where(op.c.kind == "instructed", op.c.actor == person, oplog.IS_KEPT)
    with records.database.reading() as connection:
        bodies = [json.loads(body) for body in connection.execute(query).scalars()]
    seen = {version for body in bodies for version in body.get("training", [])}
    unseen = []
    for of, name in about:
        items = stated.get(f"{of} {name}", {}).get("items", [])
        version = hashlib.sha256(json.dumps([of, name, items]).encode()).hexdigest()[:16]
        if items and version not in seen:
            unseen.append({"of": of, "about": name, "version": version, "items": items})
    return unseen


INSTRUCTIONS_VERSION = "2026-11"
"""Version of the tablet's instructions for each strategy."""

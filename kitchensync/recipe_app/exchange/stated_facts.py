"""Facts about recipes and participants for the statistics of data sets, entered at the desk; the latest count.

Recipes: heating instrument, skills, tools. Participants, voluntarily: age band, how often they cook; only the number
of people in each band leaves the app.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from sqlalchemy import select

from kitchensync.recipe_app.store import oplog, tables
from kitchensync.recipe_app.store.app_records import AppRecords

RECIPE, PERSON = "recipe_facts", "person_facts"
OF_RECIPES = ("heating", "skills", "tools")
AGES = ("18-24", "25-34", "35-44", "45-54", "55-64", "65+")
BANDS = ("age", "cooks", "gender", "hand")
UNSAID = "not said"


def words_in(text: str) -> list[str]:
    """Split a line at its commas."""
    return list(dict.fromkeys(word for part in text.split(",") if (word := " ".join(part.split()))))


def latest(records: AppRecords, kind: str) -> dict[str, dict[str, Any]]:
    """Return subject -> body of its last operation of a kind."""
    query = select(tables.op).where(tables.op.c.kind == kind, oplog.IS_KEPT).order_by(tables.op.c.n)
    with records.database.reading() as connection:
        return {row.subject: json.loads(row.body) for row in connection.execute(query)}


def stated_of(
    records: AppRecords, recipes: Iterable[tuple[str, str]], pseudonyms: Iterable[str]
) -> list[dict[str, Any]]:
    """Return the facts for a data set of these recipes (name, title) and people, as far as stated."""
    of_recipes = latest(records, RECIPE)
    lines: list[dict[str, Any]] = []
    for name, title in sorted(set(recipes)):
        facts = {key: of_recipes.get(name, {}).get(key, []) for key in OF_RECIPES}
        if any(facts.values()):
            lines.append({"kind": "recipe", "recipe": title, **facts})
    stated = latest(records, PERSON)
    names = {row["id"]: row["pseudonym"] for row in records.rows(tables.person)}
    of_people = {
        names[person]: facts for person, facts in stated.items() if person in names and any(facts.values())
    }
    people = set(pseudonyms)
    if any(person in of_people for person in people):
        bands = {
            key: dict(
                sorted(Counter(of_people.get(person, {}).get(key) or UNSAID for person in people).items())
            )
            for key in BANDS
        }
        lines.append({"kind": "participants", "persons": len(people), **bands})
    return lines

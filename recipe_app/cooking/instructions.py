"""What each strategy asks of a person, told after the choice: the log keeps which version was read, and its words.

The words are in the message catalogues under `instructions.`; a lab may put its own in their place at the desk. A
changed meaning is a new version; a lab's own text is known by when it was written in the log.
"""

from __future__ import annotations

from typing import Any

from recipe_app.exchange.stated_facts import latest
from recipe_app.store.app_records import AppRecords

INSTRUCTIONS_VERSION = "2026-11"
STRATEGIES = ("normal", "impromptu", "disordered", "induced")
KIND = "instructions"
"""The operation that states a lab's own text; its subject is `<language> <strategy>`."""


def instructions(records: AppRecords) -> dict[str, Any]:
    """Return the version and a lab's own texts by language and strategy; an empty one gives way to ours."""
    texts: dict[str, dict[str, str]] = {}
    written = [body for body in latest(records, KIND).values() if body["text"]]
    for body in written:
        texts.setdefault(body["language"], {})[body["strategy"]] = body["text"]
    version = max((body["version"] for body in written), default=INSTRUCTIONS_VERSION)
    return {"version": version, "texts": texts}

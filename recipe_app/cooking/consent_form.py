"""The form of consent: its words in every language and its version.

The version is made from the words: whoever changes a word asks everybody again. The words of each version are kept.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from recipe_app.store.app_records import AppRecords
from storage.permission import Scope

LOCALES = Path(__file__).resolve().parent.parent / "locales"
FORM = "consent_form"
"""Kind of the operation that keeps the words of a version, which is its subject."""
KEYS = ("consent.text", "consent.agree", "consent.scopes", *(f"consent.scope.{scope}" for scope in Scope))


def _words() -> dict[str, dict[str, str]]:
    catalogues = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(LOCALES.glob("*.json"))}
    return {language: {key: words[key] for key in KEYS} for language, words in catalogues.items()}


WORDS = _words()
CONSENT_VERSION = hashlib.sha256(json.dumps(WORDS, sort_keys=True).encode()).hexdigest()[:12]


def keep_form(records: AppRecords) -> None:
    """Note the words of the form the first time they are shown to somebody."""
    if not records.ops(CONSENT_VERSION):
        records.note(FORM, CONSENT_VERSION, {"words": WORDS}, actor="")


def words_of_form(records: AppRecords, version: str) -> dict[str, dict[str, str]] | None:
    """Return the words of a version by language and key; None where it was never shown here."""
    return next((op["body"]["words"] for op in records.ops(version) if op["kind"] == FORM), None)

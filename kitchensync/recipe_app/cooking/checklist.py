"""The versioned checklist and consent form before a recording; the log has the version somebody agreed to.

The texts are in the message catalogues under `check.`; a changed meaning needs a new version.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from kitchensync.operations.session_state import State
from kitchensync.recipe_app.store.app_records import AppRecords
from kitchensync.storage.consent import OFFERED

LOCALES = Path(__file__).resolve().parent.parent / "locales"
FORM = "consent_form"
"""Kind of the operation with the texts of a consent version; the version is its subject."""
KEYS = ("consent.text", "consent.agree", "consent.scopes", *(f"consent.scope.{scope}" for scope in OFFERED))


WORDS: dict[str, dict[str, str]] = {
    path.stem: {key: words[key] for key in KEYS}
    for path in sorted(LOCALES.glob("*.json"))
    if (words := json.loads(path.read_text("utf-8")))
}
CONSENT_VERSION = hashlib.sha256(json.dumps(WORDS, sort_keys=True).encode()).hexdigest()[:12]


def keep_form(records: AppRecords) -> None:
    """Log the texts of the consent form the first time they are shown."""
    if not records.ops(CONSENT_VERSION):
        records.note(FORM, CONSENT_VERSION, {"words": WORDS}, actor="")


CHECKLIST_VERSION = "2026-11"


@dataclass(frozen=True, slots=True)
class ChecklistItem:
    """A point of the checklist; those with `devices` apply only when devices record."""

    name: str
    group: str
    devices: bool = False


ITEMS = (
    ChecklistItem("jewellery", "person"),
    ChecklistItem("names", "person"),
    ChecklistItem("phone", "person"),
    ChecklistItem("allergies", "person"),
    ChecklistItem("stop", "person"),
    ChecklistItem("papers", "room"),
    ChecklistItem("mirrors", "room"),
    ChecklistItem("others", "room"),
    ChecklistItem("safety", "room"),
    ChecklistItem("tour", "room"),
    ChecklistItem("camera", "devices", devices=True),
    ChecklistItem("headset", "devices", devices=True),
)


def still_open(state: State, *, devices: bool) -> list[str]:
    """Return the names of open points, including `consent` and `second` (confirmation by a second person)."""
    consent = state["consent"] or {}
    agreed = consent.get("accepted") is True and consent.get("version") == CONSENT_VERSION
    open_points = [] if agreed else ["consent"]
    open_points += [item.name for item in items_for(devices=devices) if not state["checklist"].get(item.name)]
    return open_points if (state["checked"] or {}).get("confirmed_by") else [*open_points, "second"]


def is_through(state: State) -> bool:
    """Return whether devices may record: all points are ticked, or an admin overrode points other than consent."""
    open_points, checked = still_open(state, devices=True), state["checked"] or {}
    return bool(checked) and (not open_points or bool(checked["override"] and "consent" not in open_points))


def items_for(*, devices: bool) -> list[ChecklistItem]:
    """Return the points for a recording with or without devices."""
    return [item for item in ITEMS if devices or not item.devices]

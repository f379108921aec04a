"""What is asked before every recording, versioned: the log keeps which version somebody agreed to.

The words are in the message catalogues under `check.`; a changed meaning is a new version.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from recipe_app.cooking.consent_form import CONSENT_VERSION

CHECKLIST_VERSION = "2026-11"


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to look at; `devices` items are asked only when devices record."""

    name: str
    group: str
    devices: bool = False


ITEMS = (
    Item("jewellery", "person"),
    Item("names", "person"),
    Item("phone", "person"),
    Item("allergies", "person"),
    Item("stop", "person"),
    Item("papers", "room"),
    Item("mirrors", "room"),
    Item("others", "room"),
    Item("safety", "room"),
    Item("tour", "room"),
    Item("camera", "devices", devices=True),
    Item("headset", "devices", devices=True),
)


def still_open(state: dict[str, Any], *, devices: bool) -> list[str]:
    """Return the names of what is not ticked; `consent` and `second` (the second person) are among them."""
    consent = state["consent"] or {}
    agreed = consent.get("accepted") is True and consent.get("version") == CONSENT_VERSION
    found = [] if agreed else ["consent"]
    found += [item.name for item in items_for(devices=devices) if not state["checklist"].get(item.name)]
    return found if (state["checked"] or {}).get("confirmed_by") else [*found, "second"]


def is_through(state: dict[str, Any]) -> bool:
    """Tell whether devices may record: all is ticked, or an admin let points be open, but never the consent."""
    open_points, checked = still_open(state, devices=True), state["checked"] or {}
    return bool(checked) and (not open_points or bool(checked["override"] and "consent" not in open_points))


def items_for(*, devices: bool) -> list[Item]:
    """Return what must be ticked before a recording with or without devices."""
    return [item for item in ITEMS if devices or not item.devices]

"""What is asked before every recording, versioned: the log keeps which version somebody agreed to.

The words are in the message catalogues under `consent.` and `check.`; a changed meaning is a new version.
"""

from __future__ import annotations

from dataclasses import dataclass

CONSENT_VERSION = "2026-11"
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


def items_for(*, devices: bool) -> list[Item]:
    """Return what must be ticked before a recording with or without devices."""
    return [item for item in ITEMS if devices or not item.devices]

"""The cards of a recording that were made, who has read them, and how far its films are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict

from kitchensync.shell.host_clock import utc_anchor
from kitchensync.shell.untrusted_json import BadJson, load_json
from kitchensync.storage.manifest import edit_manifest, write_json
from kitchensync.storage.names import MEDIA
from kitchensync.storage.recording_files.media_file import load_media

FIRST, FINAL = "first", "final"
NOT_COPIED = ("prepared", "pending", "recording")
"""States of a camera whose video has not been copied whole."""
CARDS = Path("sync") / "card.json"


def stage_of(recording: Path) -> str:
    """Return `final` once every film of every camera has been fetched, or will never be; else `first`."""
    return FINAL if all(state in ("done", "failed") for state in cameras_of(recording).values()) else FIRST


def cameras_of(recording: Path) -> dict[str, str]:
    """Return how far the films of each camera are: `pending`, `done`, `failed`, or `unknown`."""
    states = {}
    for path in sorted(recording.glob(f"*/{MEDIA}")):
        try:
            states[path.parent.name] = load_media(path)["state"]
        except (OSError, BadJson, KeyError):
            states[path.parent.name] = "unknown"
    return states


def is_on_card(recording: Path) -> bool:
    """Return whether a camera recorded a video that has not been copied whole."""
    return any(state in NOT_COPIED for state in cameras_of(recording).values())


def kept_cards(recording: Path) -> dict[str, Any]:
    """Return the cards that were made, by stage."""
    try:
        kept = load_json(recording / CARDS)
    except (OSError, BadJson):
        return {}
    return kept if isinstance(kept, dict) else {}


def keep_cards(recording: Path, kept: dict[str, Any]) -> None:
    """Write the cards of a recording, by stage."""
    (recording / CARDS).parent.mkdir(exist_ok=True)
    write_json(recording / CARDS, kept)


class Acknowledgement(TypedDict):
    """Who has read the card of which stage."""

    by: str
    stage: str
    status: str
    utc_ns: int


def acknowledge(recording: Path, card: Mapping[str, Any], by: str) -> Acknowledgement:
    """Keep in the manifest who has read a card, and of which stage; returns that."""
    read: Acknowledgement = {
        "by": by,
        "stage": card["stage"],
        "status": card["status"],
        "utc_ns": utc_anchor().utc_ns,
    }
    with edit_manifest(recording) as manifest:
        manifest["card"] = read
    return read

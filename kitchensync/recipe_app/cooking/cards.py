"""The session card: made when a recording ends, to be read before the kitchen records again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kitchensync.operations.errors import NotNow
from kitchensync.recipe_app.cooking.collaborators import Collaborators
from kitchensync.recipe_app.exchange.desk_batches import BatchRow
from kitchensync.recipe_app.exchange.folders import is_set_aside
from kitchensync.recipe_app.store import tables
from kitchensync.storage.errors import StorageError
from kitchensync.storage.recording_files.kept_session_card import (
    FIRST,
    Acknowledgement,
    acknowledge,
    kept_cards,
    stage_of,
)
from kitchensync.task_graphs.errors import NotFound

MADE, MAKING, NONE = "made", "making", "none"
MOST_ADOPTED = 100
"""Number of newest recordings that are searched for one that the devices made."""


@dataclass(frozen=True, slots=True)
class CardState:
    """The newest card of a recording: `state` is made, making or none, `reason` why there is none."""

    state: str = NONE
    reason: str = ""
    card: dict[str, Any] | None = None
    read: dict[str, Any] | None = None


def card_of(tools: Collaborators, folder: str) -> CardState:
    """Return the newest card of a recording that has ended; queue the card of this stage if there is none.

    Raises NotFound, StorageError.
    """
    manifest = tools.folders.known_manifest(folder)
    if manifest["state"] != "complete" or manifest.get("withdrawn"):
        return CardState()
    path = (tools.folders.data / folder).absolute()
    kept, stage = kept_cards(path), stage_of(path)
    jobs = [row for row in tools.cards.rows() if row["recording"] == f"{folder} {stage}"]
    if stage not in kept and not jobs:
        tools.cards.ask([BatchRow(f"{folder} {stage}", folder, "card", path)])
    card = kept.get(stage) or kept.get(FIRST)
    is_over = bool(jobs) and jobs[-1]["state"] not in ("waiting", "doing")
    state = MADE if card is not None else NONE if is_over else MAKING
    return CardState(state, jobs[-1]["said"] if is_over else "", card, manifest.get("card"))


def read_card(tools: Collaborators, folder: str, by: str) -> Acknowledgement:
    """Note that somebody has read the card, or that there is none. Raises NotNow, StorageError."""
    newest = card_of(tools, folder)
    if newest.state == MAKING:
        raise NotNow("the card is still being made; wait until it is here")
    return acknowledge(tools.folders.data / folder, newest.card or {"stage": FIRST, "status": "none"}, by)


def latest(tools: Collaborators, kitchen: str) -> dict[str, Any] | None:
    """Return the newest recording that a kitchen's devices made, None if it has not ended or is set aside."""
    of_kitchen = tables.recording.c.kitchen == kitchen, tables.recording.c.folder.is_not(None)
    newest = tables.recording.c.created_utc_ns.desc()
    for row in tools.records.rows(tables.recording, *of_kitchen, order=newest, limit=MOST_ADOPTED):
        try:
            manifest = tools.folders.known_manifest(row["folder"])
        except (NotFound, StorageError):
            return None  # the pages of running and of all recordings show its problem
        if not manifest.get("adopted"):  # an adopted one was filmed elsewhere, without this kitchen's devices
            return row if manifest.get("state") == "complete" and not is_set_aside(manifest) else None
    return None


def unread_card(tools: Collaborators, kitchen: str) -> dict[str, Any] | None:
    """Return a kitchen's newest recording if its card is unread."""
    row = latest(tools, kitchen)
    return row if row and "card" not in tools.folders.manifest(row["folder"]) else None

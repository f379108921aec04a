"""The session card of a recording at the desk: its quality, what to record again, and whether it was read."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from fastapi.responses import Response

from kitchensync.operations.errors import NotNow
from kitchensync.operations.operation_kinds import Strict
from kitchensync.recipe_app.cooking.cards import card_of, read_card
from kitchensync.recipe_app.cooking.collaborators import Collaborators
from kitchensync.recipe_app.people.roles import Access
from kitchensync.recipe_app.store import tables
from kitchensync.recipe_app.web.desk.pages import render, who_cooks
from kitchensync.recipe_app.web.door.access import Asking, JsonObject, Route, Tools
from kitchensync.recipe_app.web.i18n import words_of
from kitchensync.storage.consent import Purpose, require_consent
from kitchensync.task_graphs.errors import NotFound

NOTHING: dict[str, Any] = {"state": "none", "said": "", "card": None, "read": None}


class CardIsRead(Strict):
    """An empty body."""


def _folder_and_card(tools: Collaborators, recording: str) -> tuple[str, dict[str, Any]]:
    """Return the folder and card of a recording; empty if it has no devices. Raises NotFound."""
    folder = tools.intake.recording(recording, kitchen=None)["folder"]
    return (folder, card_of(tools, folder)) if folder else ("", NOTHING)


def card_page(request: Request, tools: Tools, visitor: Asking, recording: str) -> Response:
    """Show the card, or wait until it is made."""
    folder, card = _folder_and_card(tools, recording)
    row = tools.records.row(tables.recording, recording)
    fields = card | (who_cooks(tools, row) if row else {})
    fields |= {"lacking": tools.folders.lacking_consent(folder), "recording": recording, "folder": folder}
    return render(request, "desk/card.html", visitor=visitor, **fields)


def card_state(request: Request, tools: Tools, recording: str) -> JsonObject:
    """Return the state of the card; the page reloads when the card is ready."""
    _, card = _folder_and_card(tools, recording)
    making = card["state"] == "making"
    return {"state": "asking" if making else card["state"], "said": words_of(request)("card.making")}


def thumbnail(tools: Tools, recording: str, number: int) -> Response:
    """Return a thumbnail that the camera made of its videos. Raises NotFound, NotPermitted."""
    folder, card = _folder_and_card(tools, recording)
    names = card["card"]["thumbnails"] if card["card"] else []
    path = tools.folders.data / folder / names[number] if 0 <= number < len(names) else None
    if path is None or not path.is_file():
        raise NotFound("no picture {number} on this card", number=number)
    require_consent(tools.folders.data / folder, Purpose.LOOK)
    return Response(path.read_bytes(), media_type="image/jpeg")


def read(tools: Tools, visitor: Asking, recording: str, body: CardIsRead) -> JsonObject:
    """Note that the operator has read the card, so that the kitchen may record again."""
    folder, card = _folder_and_card(tools, recording)
    if not folder or (card["state"] == "none" and not card["said"]):
        raise NotNow("this recording has no card")
    return {"read": read_card(tools, folder, visitor.pseudonym)}


ROUTES = [
    Route("/desk/recordings/{recording}/card", card_page, Access.OPERATE, page=True),
    Route("/api/v1/desk/recordings/{recording}/card", card_state, Access.OPERATE),
    Route("/api/v1/desk/recordings/{recording}/card", read, Access.OPERATE, "POST"),
    Route("/api/v1/desk/recordings/{recording}/card/pictures/{number}", thumbnail, Access.OPERATE),
]
